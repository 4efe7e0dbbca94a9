// Package usage marks errors of invocation: flags, arguments and settings that are invalid.
// A command that fails with one exits with 2 and names its help.
package usage

import (
	"fmt"
)

// Error is a wrong call; its text is that of the cause.
type Error struct{ Err error }

func (e Error) Error() string { return e.Err.Error() }
func (e Error) Unwrap() error { return e.Err }

// Wrap marks an error as one of usage.
func Wrap(err error) error { return Error{err} }

// Errorf is Wrap of a new error.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

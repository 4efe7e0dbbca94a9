package wasm

import (
	"errors"
	"fmt"
)

// Causes a caller may branch on.
var (
	// ErrRefused marks a program that the loader does not accept. The error also
	// is a *RefusedError.
	ErrRefused = errors.New("wasm: program refused")
	// ErrTrap marks a program that trapped: an access outside its memory, an
	// unreachable instruction, or a spent loop budget.
	ErrTrap = errors.New("wasm: program trapped")
	// ErrUnknownTensor marks a name that the program's manifest does not list in
	// the role asked for.
	ErrUnknownTensor = errors.New("wasm: no such tensor")
	// ErrLayout marks data whose type or length does not fit the tensor.
	ErrLayout = errors.New("wasm: layout does not fit")
	// ErrNotReady marks a step before every frozen tensor was written.
	ErrNotReady = errors.New("wasm: frozen tensors missing")
	// ErrArithmetic marks a fused program on a host whose processor has no fused
	// multiply-add: it would take hundreds of times as long.
	ErrArithmetic = errors.New("wasm: no fused multiply-add here")
	// ErrClosed marks use after Close.
	ErrClosed = errors.New("wasm: closed")
)

// RefusedError says where a program breaks which rule.
type RefusedError struct {
	Where  string // "module", "manifest", "function 3 +0x1c", ...
	Reason string // names the rule and, where there is one, the limit
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("wasm: program refused: %s: %s", e.Where, e.Reason)
}

// Is makes errors.Is(err, ErrRefused) hold.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

func refuse(where, format string, args ...any) error {
	return &RefusedError{Where: where, Reason: fmt.Sprintf(format, args...)}
}

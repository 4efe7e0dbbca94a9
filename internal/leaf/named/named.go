// Package named opens files that people name. Opening a named pipe, a device or a socket may block
// for ever in a system call that no signal ends: these are refused. What a shell hands in for a
// file, <(command) or /dev/stdin, is a pipe that is read once, and Interrupt ends the wait for it.
package named

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// Error reports that a named file cannot be used; its text is the cause's.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Wrap marks an error as an [Error]; nil stays nil.
func Wrap(err error) error {
	if err == nil {
		return nil
	}
	return &Error{err}
}

// Errorf is Wrap of a new error.
func Errorf(format string, a ...any) error { return &Error{fmt.Errorf(format, a...)} }

// Open opens a regular file, which may be read again.
func Open(name string) (*os.File, error) { return open(name, regular) }

// OpenAny opens a regular file, or a folder, whose files the caller opens.
func OpenAny(name string) (*os.File, error) {
	return open(name, func(name string, info fs.FileInfo) error {
		if info.IsDir() {
			return nil
		}
		return regular(name, info)
	})
}

func open(name string, check func(string, fs.FileInfo) error) (*os.File, error) {
	if info, err := os.Stat(name); err == nil { // else the system says the same again
		if err := check(name, info); err != nil {
			return nil, Wrap(err)
		}
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, Wrap(err)
	}
	info, err := f.Stat() // what a name stands for may have changed
	if err == nil {
		err = check(name, info)
	}
	if err != nil {
		return nil, Wrap(errors.Join(err, f.Close()))
	}
	return f, nil
}

// Dir returns an error if the path exists and is no folder.
func Dir(name string) error {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		return Errorf("%s: it is a file; want a folder", name)
	}
	return nil
}

// MakeDir makes a folder to write to, and those above it.
func MakeDir(name string) error {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return Errorf("the folder to write to: %w", err)
	}
	return nil
}

// Check returns the reason why a file cannot be opened; nil if it can.
func Check(name string) error {
	f, err := Open(name)
	if err != nil {
		return err
	}
	return Wrap(f.Close())
}

// Once opens a regular file, or what a shell hands in for one, that is read once from its start.
func Once(name string) (io.ReadCloser, error) {
	if info, err := os.Stat(name); err != nil || info.Mode().Type() != fs.ModeNamedPipe || !handed(name) {
		return Open(name)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, Wrap(err)
	}
	return Stream{f}, nil
}

// Read is all that Once opens, which is at most so many bytes.
func Read(name string, most int64) ([]byte, error) {
	f, err := Once(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has more than %d bytes", most)}
	}
	return b, Wrap(err)
}

// handed reports whether a name is one by which a shell hands in a stream. (An expression for it
// would be a twentieth of what a page loads.)
func handed(name string) bool {
	for _, before := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if number, ok := strings.CutPrefix(name, before); ok {
			return number != "" && strings.Trim(number, "0123456789") == ""
		}
	}
	return name == "/dev/stdin"
}

func regular(name string, info fs.FileInfo) error {
	is := ""
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		is = "a folder"
	case mode&fs.ModeNamedPipe != 0 && handed(name):
		is = "a stream, which can be read once"
	case mode&fs.ModeNamedPipe != 0:
		is = "a named pipe"
	case mode&fs.ModeSocket != 0:
		is = "a socket"
	default:
		is = "a device"
	}
	return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("it is %s; want a file", is)}
}

var (
	over      = make(chan struct{})
	interrupt = sync.OnceFunc(func() { close(over) })
)

// Interrupt ends every wait for a Stream, now and from now on: a signal asked the program to end.
func Interrupt() { interrupt() }

// ErrInterrupted is the end of a Stream by Interrupt.
var ErrInterrupted = errors.New("interrupted")

// Stream is standard input or a pipe from the shell, whose writer may never finish.
type Stream struct{ *os.File }

// Read reads, until Interrupt. Input that arrives afterwards is lost.
func (s Stream) Read(p []byte) (int, error) {
	type came struct {
		n   int
		err error
	}
	b, done := make([]byte, len(p)), make(chan came, 1)
	go func() { // no deadline ends a terminal's read; with the program it ends
		n, err := s.File.Read(b)
		done <- came{n, err}
	}()
	select {
	case <-over:
		return 0, ErrInterrupted
	case c := <-done:
		return copy(p, b[:c.n]), c.err
	}
}

// WriteTo hides the file's own, which would not see Interrupt.
func (s Stream) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{s})
}

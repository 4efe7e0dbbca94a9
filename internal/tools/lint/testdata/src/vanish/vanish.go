// Package vanish loses errors in each way that the checks know.
package vanish

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

func unchecked(f *os.File) {
	f.Close() // want "unchecked error"
	os.Remove(f.Name())
	fmt.Fprintln(f, "for a person")
}

func deferred(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err // a *PathError names the file
	}
	defer in.Close() // it was only read
	out, err := os.Create(path + ".out")
	if err != nil {
		return err
	}
	defer out.Close() // want "unchecked error"
	_, err = io.Copy(out, in)
	return err
}

func replaced(path string) error {
	if _, err := os.Stat(path); err != nil {
		return nil // want "error is not nil .* but it returns nil"
	}
	return nil
}

func lost(err error) error {
	if err == io.EOF { // want "comparing with == will fail on wrapped errors.*"
		return nil
	}
	return fmt.Errorf("reading: %v", err) // want "non-wrapping format verb.*"
}

func wordless(r io.Reader) error {
	s := bufio.NewScanner(r)
	for s.Scan() {
	}
	return s.Err() // want "error returned from external package is unwrapped.*"
}

func kept(r io.Reader) error {
	s := bufio.NewScanner(r)
	for s.Scan() {
	}
	if err := s.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("a line is too long: %w", err)
	}
	return nil
}

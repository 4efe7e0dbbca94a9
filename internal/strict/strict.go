// Package strict reads YAML files that people write: an unknown key is an error that
// names it and its line.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
)

// Decode reads b into v, of which it changes what b names; an empty b names nothing. A
// file comes from anywhere, and the parser gives up on some of them by a panic (a tag
// before a mapping where a list is wanted): that, too, is an error.
func Decode(b []byte, v any) (err error) {
	if !named(b) { // the parser would clear v
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML parser cannot read it: %v", r)
		}
	}()
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w", err)
	}
	return nil
}

// named tells whether b holds anything but comments.
func named(b []byte) bool {
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}

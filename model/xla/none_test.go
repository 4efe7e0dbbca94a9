//go:build !xla || !cgo

package xla

import (
	"errors"
	"strings"
	"testing"
)

// A program without XLA says how to build one that has it.
func TestOpenSaysHowToBuild(t *testing.T) {
	if _, err := Open("/plugin.so"); !errors.Is(err, ErrPlugin) || !strings.Contains(err.Error(), "-tags xla") {
		t.Errorf("%v", err)
	}
}

package qrcode

import (
	"strings"
	"testing"
)

// What New makes is read back by a scanner in lab/readers.
func TestTooLong(t *testing.T) {
	if _, err := New(strings.Repeat("x", 3000)); err == nil {
		t.Error("3000 bytes fit")
	}
}

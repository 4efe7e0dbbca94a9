package store

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestAHostedJobDoesNotRunAlone: its fleet's ledger would not have what it spent, whatever the
// folder is called by then.
func TestAHostedJobDoesNotRunAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a copy")
	hosted := options()
	hosted.Hosted = true
	for range 2 {
		s, err := Open(dir, hosted)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, options()); !errors.Is(err, ErrHosted) {
			t.Fatalf("it runs by itself: %v", err)
		}
	}
}

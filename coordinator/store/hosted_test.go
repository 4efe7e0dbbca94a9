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

// TestServing: a folder is served while a server of several has its fleet open.
func TestServing(t *testing.T) {
	dir := folder(t)
	is := func(want bool, when string) {
		t.Helper()
		if got, err := Serving(dir); err != nil || got != want {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	is(false, "before anything ran")
	s, err := OpenShared(dir)
	ok(t, err)
	is(true, "while it runs")
	ok(t, s.Close())
	is(false, "after its end")
}

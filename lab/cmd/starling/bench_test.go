package main

import (
	"regexp"
	"testing"
)

// A coordinator hands its job to somebody who wants to know what it would show, by its
// address or its token, and is none the wiser.
func TestBenchAsksACoordinator(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := serves(t, 1, "")
	token := s.says(`join with: starling join (\S+)`)[1]
	for _, where := range []string{s.token.URL, token} {
		b := runs(t, "bench", "--job", where, "--for", "1ms", "--trials", "2", "--leak-for", "1s", "--examples", "2")
		if code := b.exit(); code != 0 || !regexp.MustCompile(`rank 1, batches of 2 x 64 tokens(?s:.*)one update of yours, of 2 examples, shows \d+ of \d+ tokens`).Match(b.out.Bytes()) {
			t.Errorf("%s: %d\n%s\n%s", where, code, b, b.out.String())
		}
	}
	if regexp.MustCompile(`[1-9]\d* of 4 enrolled`).MatchString(s.String()) {
		t.Errorf("somebody enrolled:\n%s", s)
	}
	if b := runs(t, "bench", "--job", "http://127.0.0.1:1"); b.exit() != 1 {
		t.Errorf("nobody there:\n%s", b)
	}
}

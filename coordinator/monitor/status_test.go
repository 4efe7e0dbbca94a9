package monitor

import "testing"

// Rounds that released nothing are those that are over: one that runs is not among them.
func TestUnreleased(t *testing.T) {
	for _, c := range []struct {
		state          string
		round, version int
		want           int
	}{
		{StateFinished, 7, 6, 1}, {StateFinished, 6, 6, 0}, {StateWaiting, 0, 0, 0}, {StateCommitted, 6, 6, 0},
		{StateAbandoned, 7, 6, 1}, {"collecting", 7, 6, 0}, {StateRunning, 9, 6, 2}, {StateStopped, 7, 6, 1},
	} {
		s := PublicStatus{State: c.state, RoundID: RoundID{Round: uint64(c.round), Version: c.version}}
		if got := s.Unreleased(); got != c.want {
			t.Errorf("%s, round %d of version %d: %d released nothing, want %d", c.state, c.round, c.version, got, c.want)
		}
	}
}

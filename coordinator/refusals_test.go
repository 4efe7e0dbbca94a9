package coordinator

import (
	"fmt"
	"testing"
	"time"
)

// TestRefusals: each reason is said once a minute with the number of those in between, and strangers' reasons
// take no more room than their bound.
func TestRefusals(t *testing.T) {
	var r refusals
	at := time.Unix(1e9, 0)
	for i, want := range []struct {
		reason string
		after  time.Duration
		aloud  bool
		more   int
	}{{"a", 0, true, 0}, {"a", time.Second, false, 0}, {"b", time.Second, true, 0}, {"a", 2 * time.Second, false, 0}, {"a", refusedEvery, true, 2}, {"a", 2 * refusedEvery, true, 0}} {
		if aloud, more := r.say(want.reason, at.Add(want.after)); aloud != want.aloud || more != want.more {
			t.Errorf("%d: %v, %d", i, aloud, more)
		}
	}
	for i := range 10 * mostRefusals {
		r.say(fmt.Sprint(i), at)
	}
	if len(r.of) > mostRefusals {
		t.Errorf("%d reasons are kept", len(r.of))
	}
}

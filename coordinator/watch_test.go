package coordinator

import (
	"testing"

	"github.com/starling-fl/starling/coordinator/round"
)

// TestOccurrences: the last lines are kept, each is told once, and long ones are cut.
func TestOccurrences(t *testing.T) {
	var o occurrences
	told := 0
	for i := range maxOccurrences + 50 {
		o.add(Occurrence{What: string(rune('a' + i%26))})
		if i%7 == 0 {
			lines, n := o.after(told)
			if n != i+1 || len(lines) != min(n-told, maxOccurrences) {
				t.Fatalf("after %d of %d: %d lines, %d", told, i+1, len(lines), n)
			}
			told = n
		}
	}
	lines, _ := o.after(0)
	if len(lines) != maxOccurrences || lines[len(lines)-1].What != string(rune('a'+(maxOccurrences+49)%26)) {
		t.Errorf("%d lines kept", len(lines))
	}
	if lines, _ := o.after(maxOccurrences + 50); len(lines) != 0 {
		t.Errorf("%d lines again", len(lines))
	}
}

// TestCohortMap: each standing of a drawn device is shown as itself.
func TestCohortMap(t *testing.T) {
	var order []*device
	r := &running{away: map[*device]struct{}{}, parts: map[round.Device]*participant{}}
	add := func(p participant, connected, away, browser bool) {
		d := &device{n: round.Device(len(order)), browser: browser}
		if connected {
			d.sess = &session{}
		}
		if away {
			r.away[d] = struct{}{}
		}
		order = append(order, d)
		r.parts[d.n] = &p
	}
	add(participant{}, false, false, false)
	add(participant{}, true, false, true)
	add(participant{heldTurns: 1}, true, false, false)
	add(participant{heldTurns: 0b111}, true, false, false)
	add(participant{heldTurns: 0b11111}, false, false, false)
	add(participant{heldTurns: 1}, false, true, false)
	add(participant{heldTurns: 1, dropped: true}, false, true, false)
	add(participant{bad: true}, true, false, false)
	c := &Coordinator{order: order}
	standing, browsers := c.cohortMap(r)
	if want := string([]byte{StandingAbsent, StandingJoined, StandingTraining, StandingMasked, StandingRevealed, StandingAway, StandingDropped, StandingDropped}); standing != want {
		t.Errorf("standing %q, want %q", standing, want)
	}
	if browsers != "nbnnnnnn" {
		t.Errorf("browsers %q", browsers)
	}
}

package timing

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Anyone who is waited for too long is yielded once, by the first call after that, however
// others come, go and are waited for less in the loop; next is never late.
func TestWaitsExpireInTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	start := time.Now()
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	var a Waits[int]
	waits := map[int]time.Time{} // in plain code
	change := func(now int) {
		d := rng.IntN(40)
		switch until, waited := waits[d]; rng.IntN(3) {
		case 0:
			a.End(d)
			delete(waits, d)
		case 1:
			waits[d] = at(now + 1 + rng.IntN(50))
			a.Until(d, waits[d])
		default:
			if waited && until.After(at(now+1)) {
				waits[d] = until.Add(-time.Second)
				a.Until(d, waits[d])
			}
		}
	}
	yielded := 0
	for now := range 3000 {
		change(now)
		var due, got []int
		for d, until := range waits {
			if !at(now).Before(until) {
				due = append(due, d)
			}
		}
		for _, d := range due {
			delete(waits, d)
		}
		for d := range a.Expired(at(now)) {
			got = append(got, d)
			change(now)
		}
		// Who was ended in the loop is not yielded by it.
		for _, d := range got {
			if !slices.Contains(due, d) {
				t.Fatalf("at %d one is yielded that was waited for", now)
			}
		}
		yielded += len(got)
		if len(a.of) < len(waits) {
			t.Fatalf("at %d %d are waited for, want %d", now, len(a.of), len(waits))
		}
		for d, until := range waits {
			if _, ok := a.of[d]; !ok || a.next.After(until) || a.next.IsZero() {
				t.Fatalf("at %d the next wait is said to end %v after one does", now, a.next.Sub(until))
			}
		}
		for d := range a.of { // one that was due, ended and waited for again is in both
			if _, ok := waits[d]; !ok {
				t.Fatalf("at %d one is waited for that has ended", now)
			}
		}
	}
	if yielded < 300 {
		t.Errorf("%d waits ended", yielded)
	}
}

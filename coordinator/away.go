package coordinator

import (
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
)

// away is the devices whose connection broke and that are still waited for. Owned by
// the engine, which asks before every event when the next wait ends.
type away struct {
	of   map[*fleet.Device]time.Time
	next time.Time // no wait ends earlier; zero: nobody is waited for
}

// until waits for a device until then, or no longer than that if it waits already.
func (a *away) until(d *fleet.Device, at time.Time) {
	if a.of == nil {
		a.of = map[*fleet.Device]time.Time{}
	}
	a.of[d] = at
	if a.next.IsZero() || at.Before(a.next) {
		a.next = at
	}
}

// end waits for a device no more.
func (a *away) end(d *fleet.Device) {
	if delete(a.of, d); len(a.of) == 0 {
		a.next = time.Time{}
	}
}

// expired yields the devices whose wait is over, which it ends; the loop may begin and
// end others.
func (a *away) expired(now time.Time) func(yield func(*fleet.Device) bool) {
	return func(yield func(*fleet.Device) bool) {
		if a.next.IsZero() || now.Before(a.next) {
			return
		}
		for d, until := range a.of {
			if now.Before(until) {
				continue
			}
			if a.end(d); !yield(d) {
				return // the next call finds the rest
			}
		}
		a.next = time.Time{}
		for _, until := range a.of {
			if a.next.IsZero() || until.Before(a.next) {
				a.next = until
			}
		}
	}
}

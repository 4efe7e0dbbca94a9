package coordinator

import "time"

// away is the devices whose connection broke and that are still waited for. Owned by
// the engine, which asks before every event when the next wait ends.
type away struct {
	of   map[*device]struct{}
	next time.Time // no wait ends earlier; zero: nobody is waited for
}

// until waits for a device until then, or no longer than that if it waits already.
func (a *away) until(d *device, at time.Time) {
	if a.of == nil {
		a.of = map[*device]struct{}{}
	}
	a.of[d], d.away = struct{}{}, at
	if a.next.IsZero() || at.Before(a.next) {
		a.next = at
	}
}

// end waits for a device no more.
func (a *away) end(d *device) {
	if delete(a.of, d); len(a.of) == 0 {
		a.next = time.Time{}
	}
}

// expired yields the devices whose wait is over, which it ends; the loop may begin and
// end others.
func (a *away) expired(now time.Time) func(yield func(*device) bool) {
	return func(yield func(*device) bool) {
		if a.next.IsZero() || now.Before(a.next) {
			return
		}
		for d := range a.of {
			if now.Before(d.away) {
				continue
			}
			if a.end(d); !yield(d) {
				return // the next call finds the rest
			}
		}
		a.next = time.Time{}
		for d := range a.of {
			if a.next.IsZero() || d.away.Before(a.next) {
				a.next = d.away
			}
		}
	}
}

package timing

import (
	"iter"
	"maps"
	"time"
)

// Waits holds the devices that are waited for, each until its own deadline. The next deadline is
// kept, since it is asked for before every event.
type Waits[K comparable] struct {
	of   map[K]time.Time
	next time.Time // no wait ends earlier; zero: nobody is waited for
}

// Until waits for k until then, or no longer than that if it waits already.
func (w *Waits[K]) Until(k K, at time.Time) {
	if w.of == nil {
		w.of = map[K]time.Time{}
	}
	w.of[k] = at
	if w.next.IsZero() || at.Before(w.next) {
		w.next = at
	}
}

// End stops waiting for k.
func (w *Waits[K]) End(k K) {
	if delete(w.of, k); len(w.of) == 0 {
		w.next = time.Time{}
	}
}

// Of is until when k is waited for, if it is.
func (w *Waits[K]) Of(k K) (until time.Time, waited bool) {
	until, waited = w.of[k]
	return until, waited
}

// Len is the number of waits; All yields each device with its deadline. The loop over All may
// change deadlines.
func (w *Waits[K]) Len() int                     { return len(w.of) }
func (w *Waits[K]) All() iter.Seq2[K, time.Time] { return maps.All(w.of) }

// Next is a time before which no wait ends; zero: there are no waits.
func (w *Waits[K]) Next() time.Time { return w.next }

// Expired yields and ends the waits that are over; the loop may begin and end others.
func (w *Waits[K]) Expired(now time.Time) iter.Seq[K] {
	return func(yield func(K) bool) {
		if w.next.IsZero() || now.Before(w.next) {
			return
		}
		for k, until := range w.of {
			if now.Before(until) {
				continue
			}
			if w.End(k); !yield(k) {
				return // the next call finds the rest
			}
		}
		w.next = time.Time{}
		for _, until := range w.of {
			if w.next.IsZero() || until.Before(w.next) {
				w.next = until
			}
		}
	}
}

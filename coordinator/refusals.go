package coordinator

import (
	"sync"
	"time"
)

// refusals counts why devices got no session.
type refusals struct {
	mu sync.Mutex
	of map[string]*refusal // guarded by mu
}

type refusal struct {
	said time.Time
	more int // refused for it since, unsaid
}

const (
	refusedEvery = time.Minute
	mostRefusals = 64 // reasons that are told apart: some quote what a device sent
)

// say reports whether a reason is to be logged now, and how many devices it was not logged for.
func (r *refusals) say(reason string, now time.Time) (aloud bool, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.of[reason]
	if last != nil && now.Sub(last.said) < refusedEvery {
		last.more++
		return false, 0
	}
	if last == nil {
		if len(r.of) >= mostRefusals || r.of == nil {
			r.of = map[string]*refusal{}
		}
		last = new(refusal)
		r.of[reason] = last
	}
	more = last.more
	*last = refusal{said: now}
	return true, more
}

package coordinator

import (
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/round"
)

// ownLimit is a state's deadline as the job sets it.
func ownLimit(t *core.Terms, s round.State) time.Duration {
	d := t.Job.Deadlines
	return [...]time.Duration{
		round.Gathering: d.Gather, round.Keying: d.Key, round.Sharing: d.Share,
		round.Collecting: d.Collect, round.Confirming: d.Confirm, round.Unmasking: d.Unmask,
	}[s]
}

// limits are how long each state of a round may last. A run that repeats must not
// depend on who is fast: it keeps the job's.
func (c *Coordinator) limits(size int) (limits [round.Unmasking + 1]time.Duration) {
	for s := range limits {
		own := ownLimit(c.t, round.State(s))
		if limits[s] = own; c.rnd.Secret() {
			limits[s] = c.paces.Limit(round.State(s), c.t.Job.Deadlines.Min, own, size)
		}
	}
	return limits
}

// learnPace learns from a round that is over.
func (c *Coordinator) learnPace(r *running) {
	for s := round.Keying; s <= round.Unmasking; s++ {
		c.paces.Note(s, &r.answers[s], ownLimit(c.t, s), r.Size())
	}
}

package coordinator

import (
	"time"

	"github.com/starling-fl/starling/coordinator/round"
)

// ownLimit is a state's deadline as the job sets it.
func (t *terms) ownLimit(s round.State) time.Duration {
	d := t.job.Deadlines
	return [...]time.Duration{
		round.Gathering: d.Gather, round.Keying: d.Key, round.Sharing: d.Share,
		round.Collecting: d.Collect, round.Confirming: d.Confirm, round.Unmasking: d.Unmask,
	}[s]
}

// limits are how long each state of a round may last. A run that repeats must not
// depend on who is fast: it keeps the job's.
func (c *Coordinator) limits(size int) (limits [round.Unmasking + 1]time.Duration) {
	for s := range limits {
		own := c.t.ownLimit(round.State(s))
		if limits[s] = own; c.rnd.secret() {
			limits[s] = c.paces.Limit(round.State(s), c.t.job.Deadlines.Min, own, size)
		}
	}
	return limits
}

// learnPace learns from a round that is over.
func (c *Coordinator) learnPace(r *running) {
	for s := round.Keying; s <= round.Unmasking; s++ {
		c.paces.Note(s, &r.answers[s], c.t.ownLimit(s), r.Size())
	}
}

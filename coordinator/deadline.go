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
//
// A declared share of slow devices is one of all that are there: those that rest because they were
// slow belong to it, and so do those that an earlier state of the round was closed without. Else each
// state, and each round, would leave the same share of the others behind.
func (c *Coordinator) learnPace(r *running) {
	behind := 0
	if there := c.fleet.Available(r.began); c.declaresSlow() && !c.t.Job.Sampled() {
		behind = c.fleet.Resting() * len(r.parts) / max(len(r.parts), there)
	}
	for s := round.Keying; s <= round.Unmasking; s++ {
		answers := r.answers[s]
		if c.declaresSlow() {
			answers.Silent += behind
			behind += r.answers[s].Silent
		}
		c.paces.Note(s, &answers, ownLimit(c.t, s), r.Size())
	}
}

// declaresSlow reports whether the job says what share of its devices is slow.
func (c *Coordinator) declaresSlow() bool { return c.t.Job.Deadlines.Slow > 0 }

package coordinator

import (
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
)

// tempo is how long the turns of the last rounds took, from which those of the next
// follow: each state may last tempoFactor times what the fleet needed, but no less
// than deadlines.min and no more than the job's own deadline. Owned by the engine.
//
// What the fleet needed in a round is when all had answered but the slowest tenth,
// or one; of the last rounds the longest counts.
//
//   - So no tenth of the fleet, and not one device, sets the pace by answering at the
//     last moment or not at all.
//   - Who wants the honest cut off must hurry them: but the time counts when all but
//     a tenth have answered, and other devices' answering sooner does not make that
//     tenth larger. Only who takes three times longer than nine of ten honest devices
//     can be cut off, which is what the deadline is for.
//   - When more than that tenth are silent the job's own deadline is back at once:
//     a fleet that has become slower is not cut off for longer than a round.
type tempo struct {
	last [round.Unmasking + 1][]took // of the last tempoWindow rounds
}

// took is what a state of one round needed.
type took struct {
	time time.Duration
	size int // of the round's vector, which travels in Collecting
}

const (
	tempoFactor = 3
	tempoWindow = 8
	// tempoRounds must have been seen before anything follows from them.
	tempoRounds = 3
)

// answers are what a round sees of a state: after what time devices answered, and
// how many that were there did not.
type answers struct {
	after  []time.Duration
	silent int
}

// needed is when all had answered but the slowest tenth, or one; own, the job's own
// deadline, where they never did. ok is false where too few spoke to tell.
func (a *answers) needed(own time.Duration) (t time.Duration, ok bool) {
	n := len(a.after) + a.silent
	if n < 3 {
		return 0, false
	}
	without := max(1, n/10) - a.silent
	if without < 0 {
		return own, true
	}
	slices.Sort(a.after)
	return a.after[len(a.after)-1-without], true
}

// note takes in a round that is over.
func (t *tempo) note(s round.State, a *answers, own time.Duration, size int) {
	needed, ok := a.needed(own)
	if !ok {
		return
	}
	seen := append(t.last[s], took{needed, size})
	t.last[s] = seen[max(0, len(seen)-tempoWindow):]
}

// limit is how long a state of the next round may last, whose vector has size
// coordinates.
func (t *tempo) limit(s round.State, least, own time.Duration, size int) time.Duration {
	if s == round.Gathering || len(t.last[s]) < tempoRounds {
		return own
	}
	var longest time.Duration
	for _, x := range t.last[s] {
		needed := x.time
		if s == round.Collecting && size > x.size { // all of it may be the upload
			needed = time.Duration(float64(needed) * float64(size) / float64(x.size))
		}
		longest = max(longest, needed)
	}
	return min(own, max(least, tempoFactor*longest))
}

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
			limits[s] = c.tempo.limit(round.State(s), c.t.job.Deadlines.Min, own, size)
		}
	}
	return limits
}

// timed notes after what time of its state a device has answered it.
func (r *running) timed(s round.State, after time.Duration) {
	r.answers[s].after = append(r.answers[s].after, after)
}

// keepTempo learns from a round that is over.
func (c *Coordinator) keepTempo(r *running) {
	for s := round.Keying; s <= round.Unmasking; s++ {
		c.tempo.note(s, &r.answers[s], c.t.ownLimit(s), r.Size())
	}
}

package timing

import (
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/job"
)

// Pace is how long the turns of the last rounds took, from which those of the next
// follow: each state may last [job.PaceFactor] times what the fleet needed, but no less
// than deadlines.min and no more than the job's own deadline.
//
// What the fleet needed in a round is when all had answered but a share of the slowest,
// which the job declares: a tenth if it declares none, and at least one. Of the last rounds
// the longest counts.
//
//   - So that share of the fleet, and not one device, sets the pace by answering at the
//     last moment or not at all.
//   - Who wants the honest cut off must hurry them: but the time counts when all but
//     that share have answered, and other devices' answering sooner does not make the
//     share larger. Only who takes three times longer than the other honest devices
//     can be cut off, which is what the deadline is for.
//   - When more than that share are silent the job's own deadline is back at once:
//     a fleet that has become slower is not cut off for longer than a round.
type Pace struct {
	// Unawaited is how many of n devices are not awaited: less than half of them, at least 1.
	Unawaited func(n int) int

	last [round.Unmasking + 1][]took // of the last paceWindow rounds
}

// took is what a state of one round needed.
type took struct {
	time time.Duration
	size int // of the round's vector, which travels in Collecting
}

const (
	paceWindow = 8
	// paceRounds must have been seen before anything follows from them.
	paceRounds = 3
)

// Answers are what a round sees of a state: after what time devices answered, and
// how many that were there did not.
type Answers struct {
	After  []time.Duration
	Silent int
}

// needed is when all had answered but those who are not awaited; own, the job's own
// deadline, where they never did. ok is false where too few spoke to tell.
func (a *Answers) needed(own time.Duration, unawaited func(n int) int) (t time.Duration, ok bool) {
	n := len(a.After) + a.Silent
	if n < 3 {
		return 0, false
	}
	without := unawaited(n) - a.Silent
	if without < 0 {
		return own, true
	}
	slices.Sort(a.After)
	return a.After[len(a.After)-1-without], true
}

// Note records the answers of a finished round.
func (p *Pace) Note(s round.State, a *Answers, own time.Duration, size int) {
	needed, ok := a.needed(own, p.Unawaited)
	if !ok {
		return
	}
	seen := append(p.last[s], took{needed, size})
	p.last[s] = seen[max(0, len(seen)-paceWindow):]
}

// Limit returns how long a state of the next round may last, for vectors of size coordinates.
func (p *Pace) Limit(s round.State, least, own time.Duration, size int) time.Duration {
	if s == round.Gathering || len(p.last[s]) < paceRounds {
		return own
	}
	var longest time.Duration
	for _, x := range p.last[s] {
		needed := x.time
		if s == round.Collecting && size > x.size { // all of it may be the upload
			needed = time.Duration(float64(needed) * float64(size) / float64(x.size))
		}
		longest = max(longest, needed)
	}
	return job.Deadlines{Min: least}.Paced(own, longest)
}

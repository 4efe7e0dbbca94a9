package coordinator

import (
	"math"
	"slices"

	"github.com/starling-fl/starling/secagg"
)

// bombs traces who makes shards' sums leave their range. Behind the masks one
// device's vector is like another's; but shards are drawn anew in every round, and
// whoever is in one alarmed shard after another is hardly so by chance. Owned by
// the engine.
type bombs struct {
	suspect map[*device]suspicion
	quiet   int // rounds since the last alarm
}

// suspicion is what the rounds with an alarm say of a device that was in their sums.
type suspicion struct {
	rounds, alarms int
	expected       float64 // alarms of an innocent device
	// weight is minus the logarithm of how likely an innocent device was to be in just
	// those alarmed shards that it was in.
	weight float64
}

const (
	// falseAlarm is about the probability with which any innocent device at all is
	// excluded by one trace.
	falseAlarm = 0.005
	// traceRounds is how many quiet rounds end a trace.
	traceRounds = 64
)

// tracing tells whether shards shall be as small as devices accept them: the more
// there are, the more an alarm tells.
func (b *bombs) tracing() bool { return len(b.suspect) > 0 }

// alarm notes a round in which some shards' sums were out of range: who was in
// those, and who in others.
func (b *bombs) alarm(in, others []*device) {
	b.quiet = 0
	if b.suspect == nil {
		b.suspect = map[*device]suspicion{}
	}
	f := float64(len(in)) / float64(len(in)+len(others))
	note := func(d *device, alarms int, p float64) {
		s := b.suspect[d]
		if s.alarms += alarms; len(others) > 0 { // else it says nothing
			s.rounds++
			s.expected += f
			s.weight -= math.Log(p)
		} else {
			s.alarms = 0
		}
		b.suspect[d] = s
	}
	for _, d := range in {
		note(d, 1, f)
	}
	for _, d := range others {
		note(d, 0, 1-f)
	}
}

// found returns, and forgets, those of n devices that were in so many alarmed
// shards that hardly any innocent one is: about n times C(rounds, alarms) times the
// likelihood above are expected to be. A device cannot aim its bombs at another's
// company: rosters do not say who is in a shard.
func (b *bombs) found(n int) (guilty []*device) {
	choose := func(n, k int) float64 {
		all, _ := math.Lgamma(float64(n + 1))
		in, _ := math.Lgamma(float64(k + 1))
		not, _ := math.Lgamma(float64(n - k + 1))
		return all - in - not
	}
	for d, s := range b.suspect {
		// Being in few alarmed shards is unlikely, too.
		if float64(s.alarms) > s.expected && s.weight-choose(s.rounds, s.alarms) > math.Log(float64(n)/falseAlarm) {
			guilty = append(guilty, d)
		}
	}
	if len(guilty) > 0 {
		*b = bombs{}
	}
	return guilty
}

// passed notes a round without an alarm.
func (b *bombs) passed() {
	if b.quiet++; b.quiet > traceRounds {
		*b = bombs{}
	}
}

// shardLimit is the size of the running round's shards.
func (c *Coordinator) shardLimit() int {
	if c.bombs.tracing() {
		return c.t.job.Shard.Floor
	}
	return c.t.job.Shard.Size
}

// trace takes in the round's alarmed shards and strikes whom they point at.
func (c *Coordinator) trace(r *running, alarmed []int) {
	if len(alarmed) == 0 {
		c.bombs.passed()
		return
	}
	var in, others []*device
	for n, shard := range r.shards {
		for _, id := range shard.Members() {
			switch d := c.devices[id]; {
			case !shard.InU3(secagg.ID(id)):
			case slices.Contains(alarmed, n):
				in = append(in, d)
			default:
				others = append(others, d)
			}
		}
	}
	c.bombs.alarm(in, others)
	for _, d := range c.bombs.found(c.active) {
		c.strike(d, r.id, "it was in one shard after another whose sum was out of range", true)
	}
}

package coordinator

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/secagg"
)

// bombs traces who makes shards' sums leave their range. Behind the masks one
// device's vector is like another's; but shards are drawn anew in every round, and
// whoever is in one alarmed shard after another is hardly so by chance. Owned by
// the engine.
type bombs struct {
	suspect map[*fleet.Device]suspicion
	// never is what the rounds say of a device of a sampled fleet that is no suspect:
	// it was in no cohort that gave an alarm.
	never suspicion
	quiet int // rounds since the last alarm
}

// suspicion is what the rounds with an alarm say of a device that was in their sums.
type suspicion struct {
	Rounds   int
	Alarms   int
	Expected float64 // alarms of an innocent device
	// weight is minus the logarithm of how likely an innocent device was to be in just
	// those alarmed shards that it was in.
	Weight float64
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

// alarm notes a round in which some shards' sums were out of range: who was in those,
// and who in others. Where coins drew the cohort, rest devices were there beside it
// that might have been drawn: whoever is not in an alarmed shard is one of the others.
// If all were in alarmed shards the round says nothing of anybody.
func (b *bombs) alarm(in, others []*fleet.Device, rest int) {
	b.quiet = 0
	if b.suspect == nil {
		b.suspect = map[*fleet.Device]suspicion{}
	}
	if len(others)+rest == 0 {
		for _, d := range in { // a trace begins
			b.suspect[d] = b.of(d)
		}
		return
	}
	f := float64(len(in)) / float64(len(in)+len(others)+rest)
	was := map[*fleet.Device]bool{}
	for _, d := range in {
		was[d] = true
		b.suspect[d] = b.of(d).after(1, f)
	}
	for _, d := range others {
		was[d] = true
		b.suspect[d] = b.of(d).after(0, 1-f)
	}
	if rest > 0 {
		for d, s := range b.suspect {
			if !was[d] {
				b.suspect[d] = s.after(0, 1-f)
			}
		}
		b.never = b.never.after(0, 1-f)
	}
}

// of is what is held against a device so far.
func (b *bombs) of(d *fleet.Device) suspicion {
	if s, ok := b.suspect[d]; ok {
		return s
	}
	return b.never
}

// after takes in a round with an alarm: whether the device was in an alarmed shard, and
// how likely an innocent one was to be where it was.
func (s suspicion) after(alarms int, p float64) suspicion {
	f := p
	if alarms == 0 {
		f = 1 - p
	}
	return suspicion{s.Rounds + 1, s.Alarms + alarms, s.Expected + f, s.Weight - math.Log(p)}
}

// found returns, and forgets, those of n devices that were in so many alarmed
// shards that hardly any innocent one is: about n times C(rounds, alarms) times the
// likelihood above are expected to be. A device cannot aim its bombs at another's
// company: rosters do not say who is in a shard.
func (b *bombs) found(n int) (guilty []*fleet.Device) {
	choose := func(n, k int) float64 {
		all, _ := math.Lgamma(float64(n + 1))
		in, _ := math.Lgamma(float64(k + 1))
		not, _ := math.Lgamma(float64(n - k + 1))
		return all - in - not
	}
	for d, s := range b.suspect {
		// Being in few alarmed shards is unlikely, too.
		if float64(s.Alarms) > s.Expected && s.Weight-choose(s.Rounds, s.Alarms) > math.Log(float64(n)/falseAlarm) {
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

// shardLimit is the size of the running round's shards, where they are cut. Those of
// sampled cohorts are dealt, and stay as large as they are: there each cohort is another
// part of the fleet, which tells as much.
func (c *Coordinator) shardLimit() int {
	if c.bombs.tracing() {
		return c.t.job.Shard.Floor
	}
	return c.t.job.Shard.Size
}

// keptTrace is a trace as the store keeps it, so that a restart of the coordinator
// helps no bomber.
type keptTrace struct {
	Quiet   int
	Never   suspicion            // of a sampled fleet's devices that are not named
	Suspect map[string]suspicion // by identity, in hexadecimal
}

func (c *Coordinator) keepTrace() error {
	k := keptTrace{c.bombs.quiet, c.bombs.never, map[string]suspicion{}}
	for d, s := range c.bombs.suspect {
		k.Suspect[hex.EncodeToString(d.ID[:])] = s
	}
	b, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("coordinator: trace of alarms: %w", err)
	}
	return c.store.KeepTrace(string(b))
}

// resumeTrace goes on with a trace that an earlier process began. Who was forgotten
// since is not in it any more.
func (c *Coordinator) resumeTrace() error {
	text, err := c.store.Trace()
	if err != nil || text == "" {
		return err
	}
	var k keptTrace
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return fmt.Errorf("coordinator: trace of alarms: %w", err)
	}
	for _, d := range c.fleet.All() {
		if s, ok := k.Suspect[hex.EncodeToString(d.ID[:])]; ok {
			if c.bombs.suspect == nil {
				c.bombs.suspect = map[*fleet.Device]suspicion{}
			}
			c.bombs.suspect[d] = s
		}
	}
	c.bombs.quiet, c.bombs.never = k.Quiet, k.Never
	return nil
}

// trace takes in the round's alarmed shards and strikes whom they point at.
func (c *Coordinator) trace(r *running, alarmed []int) error {
	if len(alarmed) == 0 {
		if !c.bombs.tracing() {
			return nil
		}
		c.bombs.passed()
		return c.keepTrace()
	}
	var in, others []*fleet.Device
	for n, shard := range r.shards {
		for _, id := range shard.Members() {
			switch d := c.fleet.Of(id); {
			case !shard.InU3(secagg.ID(id)):
			case slices.Contains(alarmed, n):
				in = append(in, d)
			default:
				others = append(others, d)
			}
		}
	}
	rest := 0
	if c.t.job.Sampled() {
		rest = max(0, r.ready-len(in)-len(others))
	}
	c.bombs.alarm(in, others, rest)
	for _, d := range c.bombs.found(c.fleet.Active()) {
		c.strike(d, r.id, "it was in one shard after another whose sum was out of range", true)
	}
	return c.keepTrace()
}

package fleet

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
)

// Trace finds who makes shards' sums leave their range. Behind the masks one
// device's vector is like another's; but shards are drawn anew in every round, and
// whoever is in one alarmed shard after another is hardly so by chance.
type Trace struct {
	suspect map[*Device]suspicion
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

// Tracing tells whether shards shall be as small as devices accept them: the more
// there are, the more an alarm tells.
func (t *Trace) Tracing() bool { return len(t.suspect) > 0 }

// Alarm notes a round in which some shards' sums were out of range: who was in those,
// and who in others. Where coins drew the cohort, rest devices were there beside it
// that might have been drawn: whoever is not in an alarmed shard is one of the others.
// If all were in alarmed shards the round says nothing of anybody.
func (t *Trace) Alarm(in, others []*Device, rest int) {
	t.quiet = 0
	if t.suspect == nil {
		t.suspect = map[*Device]suspicion{}
	}
	if len(others)+rest == 0 {
		for _, d := range in { // a trace begins
			t.suspect[d] = t.of(d)
		}
		return
	}
	f := float64(len(in)) / float64(len(in)+len(others)+rest)
	was := map[*Device]bool{}
	for _, d := range in {
		was[d] = true
		t.suspect[d] = t.of(d).after(1, f)
	}
	for _, d := range others {
		was[d] = true
		t.suspect[d] = t.of(d).after(0, 1-f)
	}
	if rest > 0 {
		for d, s := range t.suspect {
			if !was[d] {
				t.suspect[d] = s.after(0, 1-f)
			}
		}
		t.never = t.never.after(0, 1-f)
	}
}

// of is what is held against a device so far.
func (t *Trace) of(d *Device) suspicion {
	if s, ok := t.suspect[d]; ok {
		return s
	}
	return t.never
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

// Found returns, and forgets, those of n devices that were in so many alarmed
// shards that hardly any innocent one is: about n times C(rounds, alarms) times the
// likelihood above are expected to be. A device cannot aim its bombs at another's
// company: rosters do not say who is in a shard.
func (t *Trace) Found(n int) (guilty []*Device) {
	choose := func(n, k int) float64 {
		all, _ := math.Lgamma(float64(n + 1))
		in, _ := math.Lgamma(float64(k + 1))
		not, _ := math.Lgamma(float64(n - k + 1))
		return all - in - not
	}
	for d, s := range t.suspect {
		// Being in few alarmed shards is unlikely, too.
		if float64(s.Alarms) > s.Expected && s.Weight-choose(s.Rounds, s.Alarms) > math.Log(float64(n)/falseAlarm) {
			guilty = append(guilty, d)
		}
	}
	if len(guilty) > 0 {
		*t = Trace{}
	}
	return guilty
}

// Passed notes a round without an alarm.
func (t *Trace) Passed() {
	if t.quiet++; t.quiet > traceRounds {
		*t = Trace{}
	}
}

// keptTrace is a trace as it is kept, so that a restart of the coordinator helps no bomber.
type keptTrace struct {
	Quiet   int
	Never   suspicion            // of a sampled fleet's devices that are not named
	Suspect map[string]suspicion // by identity, in hexadecimal
}

// Text is the trace as it is kept.
func (t *Trace) Text() (string, error) {
	k := keptTrace{t.quiet, t.never, map[string]suspicion{}}
	for d, s := range t.suspect {
		k.Suspect[hex.EncodeToString(d.ID[:])] = s
	}
	b, err := json.Marshal(k)
	if err != nil {
		return "", fmt.Errorf("trace of alarms: %w", err)
	}
	return string(b), nil
}

// Resume goes on with a trace that an earlier process began. Who was forgotten since is not
// in it any more.
func (t *Trace) Resume(text string, f *Fleet) error {
	var k keptTrace
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return fmt.Errorf("trace of alarms: %w", err)
	}
	*t = Trace{quiet: k.Quiet, never: k.Never}
	for _, d := range f.all {
		if s, ok := k.Suspect[hex.EncodeToString(d.ID[:])]; ok {
			if t.suspect == nil {
				t.suspect = map[*Device]suspicion{}
			}
			t.suspect[d] = s
		}
	}
	return nil
}

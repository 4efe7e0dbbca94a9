package fleet

import (
	"maps"
	"math"
	"slices"
)

// Trace finds devices that make shards' sums leave their range. Behind the masks one
// device's vector is like another's. But shards are drawn anew in every round, and a sum
// leaves its range only if a hostile device is in it.
//
// Hostile devices choose when to strike, and rosters may show them who is in their shard:
// they can strike only in a victim's company. Both tests below hold for any such choice of
// up to as many hostile devices as the caller says. More than those can frame a device.
type Trace struct {
	begun int // traces, this one included
	on    bool
	// hostile and n are the most of them that Take was told since the trace began: a fleet that shrinks shrinks
	// neither the coalition of its alarms nor the number of those who may be convicted.
	hostile, n int
	quiet      int // rounds since the last alarm
	weight     map[*Device]weight
	alarms     [][]*Device // in whose sums the last alarms were
}

// Shard is a round's shard, for a Trace.
type Shard struct {
	Dealt []*Device // devices that the deal put into it, whatever became of them
	// Sum are the devices in the sum, if it was out of range; else nil.
	Sum []*Device
	// Company bounds the probability, before the deal and for an honest device that it puts
	// here, that a hostile one is here, too.
	Company float64
}

// weight is by how much likelier a device's rounds are if it strikes often than if it is
// innocent, as logarithms: one for each of the rates of strikers.
type weight [len(strikers)]float64

// strikers are the shares of the rounds without hostile company in which a device strikes,
// against which its innocence is held.
var strikers = [...]float64{0.9, 0.5}

const (
	// falseAlarm bounds the probability that any innocent device is convicted by weight, over
	// all traces of a job: trace number j has 1/(j(j+1)) of it.
	falseAlarm = 0.005
	// traceRounds is how many quiet rounds end a trace, and foundRounds how many after it has
	// convicted a device.
	traceRounds, foundRounds = 64, 8
	// maxPlaces bounds the alarms that are kept: the places in their sums.
	maxPlaces = 1 << 13
)

// Tracing reports whether shards shall be as small as devices accept them: the more
// there are, the more an alarm tells.
func (t *Trace) Tracing() bool { return t.on }

// Take notes a round's shards. hostile is how many devices may be, at least 1, and n is how
// many there are. It returns those that are convicted; they are not returned again.
//
// By weight: let an innocent device be in a shard. However hostile devices choose, that shard
// strikes with a probability of at most Company. The likelihood ratio of a higher rate to that
// one is then a supermartingale, which passes n/a with a probability of at most a/n (Ville).
// All rounds since the trace began count, quiet ones too; the one that began it does not,
// because hostile devices chose it.
//
// By cover, without any probability: each alarm is of a hostile device. If no so many devices,
// with d left out, were in all alarms between them, d is hostile. See covered. Those that have been
// excluded or have left since come on top: hostile devices can enrol anew under other names.
func (t *Trace) Take(shards []Shard, hostile, n int) (guilty []*Device) {
	alarm := slices.ContainsFunc(shards, func(s Shard) bool { return s.Sum != nil })
	switch {
	case !t.on && !alarm:
		return nil
	case !t.on:
		t.on, t.begun, t.weight = true, t.begun+1, map[*Device]weight{}
	default:
		t.weigh(shards)
	}
	t.hostile, t.n = max(t.hostile, hostile), max(t.n, n)
	if !alarm {
		if t.quiet++; t.quiet > traceRounds {
			*t = Trace{begun: t.begun}
		}
		return nil
	}
	t.quiet = 0
	for _, s := range shards {
		if s.Sum != nil {
			t.alarms = append(t.alarms, s.Sum)
		}
	}
	places := 0
	for i := len(t.alarms) - 1; i >= 0; i-- {
		if places += len(t.alarms[i]); places > maxPlaces {
			t.alarms = slices.Delete(t.alarms, 0, i+1)
			break
		}
	}
	most := math.Log(float64(t.n) * float64(t.begun) * float64(t.begun+1) / falseAlarm)
	for _, d := range t.suspects() {
		if !d.Excluded && (t.weight[d].mean() > most || !t.covered(d)) {
			guilty = append(guilty, d)
		}
	}
	if len(guilty) > 0 {
		t.quiet = traceRounds - foundRounds
	}
	return guilty
}

// Pass records a round that ended after its shards were dealt and before their sums were checked. It counts as one
// without a strike: otherwise hostile devices could end the rounds in which they are not in their victim's shard.
func (t *Trace) Pass(shards []Shard) {
	if t.on {
		t.weigh(shards)
	}
}

// weigh takes in who was where, and which shards struck.
func (t *Trace) weigh(shards []Shard) {
	for _, s := range shards {
		if !(s.Company < 1) { // it may strike in every round: nothing follows
			continue
		}
		p := max(s.Company, 1e-9)
		// A rate q = p + share (1-p) in place of p: of a shard that strikes q/p, else (1-q)/(1-p) = 1-share,
		// which is exact where p is nearly 1.
		var hit, miss weight
		for i, share := range strikers {
			hit[i], miss[i] = math.Log((p+share*(1-p))/p), math.Log1p(-share)
		}
		for _, d := range s.Dealt {
			add, w := &miss, t.weight[d]
			if slices.Contains(s.Sum, d) {
				add = &hit
			}
			for i := range w {
				w[i] += add[i]
			}
			t.weight[d] = w
		}
	}
}

// mean is the logarithm of the mean of the likelihood ratios.
func (w weight) mean() float64 {
	most, sum := slices.Max(w[:]), 0.0
	for _, x := range w {
		sum += math.Exp(x - most)
	}
	return most + math.Log(sum/float64(len(w)))
}

// suspects are the devices in the alarms that are kept, in the order of their numbers.
func (t *Trace) suspects() []*Device {
	in := map[*Device]bool{}
	for _, sum := range t.alarms {
		for _, d := range sum {
			in[d] = true
		}
	}
	return slices.SortedFunc(maps.Keys(in), func(a, b *Device) int { return int(a.N - b.N) })
}

// covered reports whether as many other devices as may be hostile at a time, and all that are out
// by now, could have made all alarms that d was in. If the largest numbers of these alarms that the
// former were in do not add up to those that none of the latter was in, they could not.
func (t *Trace) covered(d *Device) bool {
	alarms, beside := 0, map[*Device]int{}
	for _, sum := range t.alarms {
		if !slices.Contains(sum, d) || slices.ContainsFunc(sum, func(o *Device) bool { return o != d && (o.Excluded || o.Out) }) {
			continue
		}
		alarms++
		for _, other := range sum {
			if other != d {
				beside[other]++
			}
		}
	}
	counts := slices.SortedFunc(maps.Values(beside), func(a, b int) int { return b - a })
	sum := 0
	for _, n := range counts[:min(t.hostile, len(counts))] {
		sum += n
	}
	return sum >= alarms
}

// Forgive clears the trace of a device that the operator pardons.
func (t *Trace) Forgive(d *Device) {
	delete(t.weight, d)
	t.alarms = slices.DeleteFunc(t.alarms, func(sum []*Device) bool { return slices.Contains(sum, d) })
}

// Company is a device and the alarms that it was in.
type Company struct {
	Device *Device
	Alarms int
}

// Foremost returns the devices that were in the most of the alarms that are kept, at most so
// many of them, and how many alarms there are. It convicts nobody: hostile devices that know
// who is in their shard can bring an honest one to its top.
func (t *Trace) Foremost(most int) (all []Company, alarms int) {
	for _, d := range t.suspects() {
		n := 0
		for _, sum := range t.alarms {
			if slices.Contains(sum, d) {
				n++
			}
		}
		all = append(all, Company{d, n})
	}
	slices.SortStableFunc(all, func(a, b Company) int { return b.Alarms - a.Alarms })
	return all[:min(most, len(all))], len(t.alarms)
}

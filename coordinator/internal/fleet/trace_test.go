package fleet

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-fl/starling/coordinator/round"
)

// drill is a fleet whose rounds a coalition of its first devices bends: strikes says whether
// shards are made to alarm, of those that hold one of them.
type drill struct {
	devices   int
	coalition int // that is there; the tracer is told declared
	declared  int
	shard     int // devices of a shard
	drawn     int // devices of a round, all where 0; then they are one shard
	strikes   func(r *rand.Rand, round int, in []int) bool
}

// play plays rounds, and returns in which each convicted device was convicted, and the alarms.
func (d drill) play(t *testing.T, seed uint64, rounds int) (convicted map[int]int, alarms int) {
	t.Helper()
	all := make([]*Device, d.devices)
	for i := range all {
		all[i] = &Device{N: round.Device(i), ID: [32]byte{byte(i), byte(i >> 8)}}
	}
	convicted = map[int]int{}
	rnd := rand.New(rand.NewPCG(seed, 1))
	var b Trace
	for at := range rounds {
		var there []int
		for _, i := range rnd.Perm(d.devices) {
			if !all[i].Excluded {
				there = append(there, i)
			}
		}
		n := len(there)
		if d.drawn > 0 {
			there = there[:d.drawn]
		}
		var shards []Shard
		for in := range slices.Chunk(there, cmp.Or(d.drawn, d.shard)) {
			s := Shard{Company: company(n, len(in), d.declared)}
			for _, i := range in {
				s.Dealt = append(s.Dealt, all[i])
			}
			if slices.ContainsFunc(in, func(i int) bool { return i < d.coalition }) && d.strikes(rnd, at, in) {
				s.Sum = s.Dealt
				alarms++
			}
			shards = append(shards, s)
		}
		for _, g := range b.Take(shards, d.declared, n) {
			g.Excluded = true
			convicted[int(g.N)] = at + 1
		}
	}
	return convicted, alarms
}

// company is the probability that one of k hostile devices is in an honest one's shard of size,
// of n devices.
func company(n, size, k int) float64 {
	none := 1.0
	for i := range k {
		none *= max(0, float64(n-size-i)) / float64(n-1-i)
	}
	return 1 - none
}

func honest(d drill, convicted map[int]int) (n int) {
	for i := range convicted {
		if i >= d.coalition {
			n++
		}
	}
	return n
}

// changing plays a fleet whose members change: before each round change may replace those that are there, of whom hostile says
// who is. Hostile devices strike in the last one's company. It reports whether an honest device was convicted.
func changing(seed uint64, rounds, shard int, there []*Device, hostile map[*Device]bool, change func(at int, struck []*Device, there []*Device) []*Device) bool {
	victim := there[len(there)-1]
	rnd := rand.New(rand.NewPCG(seed, 7))
	var b Trace
	var struck []*Device
	for at := range rounds {
		there = slices.DeleteFunc(change(at, struck, there), func(d *Device) bool { return d.Excluded })
		n, k := len(there), max(1, (len(there)+19)/20)
		rnd.Shuffle(n, func(i, j int) { there[i], there[j] = there[j], there[i] })
		var shards []Shard
		struck = nil
		for i := range max(1, n/shard) {
			in := there[i*n/max(1, n/shard) : (i+1)*n/max(1, n/shard)]
			s := Shard{Company: company(n, len(in), k), Dealt: slices.Clone(in)}
			if at := slices.IndexFunc(in, func(d *Device) bool { return hostile[d] }); at >= 0 && slices.Contains(in, victim) {
				s.Sum, struck = s.Dealt, append(struck, in[at])
			}
			shards = append(shards, s)
		}
		for _, d := range b.Take(shards, k, n) {
			if d.Excluded = true; !hostile[d] {
				return true
			}
		}
	}
	return false
}

// grown are devices, the first of which are hostile: a twentieth.
func grown(n int) (all []*Device, hostile map[*Device]bool) {
	hostile = map[*Device]bool{}
	for i := range n {
		d := &Device{N: round.Device(i)}
		all, hostile[d] = append(all, d), i < (n+19)/20
	}
	return all, hostile
}

// A device that has struck has itself excluded and enrols anew: never more are hostile at a time than are declared, and over
// the trace many. They frame nobody.
func TestHostileRenewalFramesNobody(t *testing.T) {
	for _, c := range []struct{ devices, shard int }{{16, 8}, {40, 8}, {100, 12}} {
		for seed := range uint64(8) {
			all, hostile := grown(c.devices)
			renew := func(_ int, struck, there []*Device) []*Device {
				for _, d := range struck {
					d.Excluded = true
					again := &Device{N: round.Device(len(hostile))}
					hostile[again] = true
					there = append(there, again)
				}
				return there
			}
			if changing(seed, 150, c.shard, all, hostile, renew) {
				t.Errorf("%d devices in shards of %d, seed %d: an honest one is convicted", c.devices, c.shard, seed)
			}
		}
	}
}

// A fleet shrinks while a trace goes on, and with it how many may be hostile: the alarms of before were made by more.
func TestShrinkingFleetFramesNobody(t *testing.T) {
	for seed := range uint64(5) {
		all, hostile := grown(120)
		shrink := func(at int, _, there []*Device) []*Device {
			if at != 100 {
				return there
			}
			left := []*Device{}
			for i, d := range all {
				if i < 3 || i >= 63 {
					left = append(left, d)
				}
			}
			return left
		}
		if changing(seed, 160, 10, slices.Clone(all), hostile, shrink) {
			t.Errorf("seed %d: an honest device is convicted", seed)
		}
	}
}

// fleets are those that issue reports named, and the smallest that a job makes by default.
var fleets = []drill{
	{devices: 64, coalition: 2, declared: 4, shard: 10},
	{devices: 64, coalition: 4, declared: 4, shard: 10},
	{devices: 1000, coalition: 50, declared: 50, shard: 12},
	{devices: 24, coalition: 2, declared: 2, shard: 12},
	{devices: 600, coalition: 30, declared: 30, drawn: 60},
}

// Hostile devices strike only where a victim is in their shard, and with any cunning in which
// of these rounds: the victim is in every alarm, and nobody honest is convicted.
func TestHostileCoalitionFramesNobody(t *testing.T) {
	const victim = 20
	with := func(in []int) bool { return slices.Contains(in, victim) }
	cunning := map[string]func(r *rand.Rand, round int, in []int) bool{
		"always":    func(_ *rand.Rand, _ int, in []int) bool { return with(in) },
		"at times":  func(r *rand.Rand, _ int, in []int) bool { return with(in) && r.Float64() < 0.5 },
		"two":       func(_ *rand.Rand, _ int, in []int) bool { return with(in) || slices.Contains(in, victim+1) },
		"in turn":   func(_ *rand.Rand, at int, in []int) bool { return with(in) && slices.Min(in) == at%4 },
		"and alone": func(r *rand.Rand, _ int, in []int) bool { return with(in) || r.Float64() < 0.05 },
		"in spells": func(_ *rand.Rand, at int, in []int) bool { return with(in) && at%100 < 20 },
	}
	for _, d := range fleets {
		for name, strikes := range cunning {
			d.strikes = strikes
			alarms, rounds, trials := 0, 150, uint64(6)
			if d.devices > 500 {
				trials = 1
			}
			for seed := range trials {
				convicted, n := d.play(t, seed, rounds)
				if alarms += n; honest(d, convicted) > 0 {
					t.Errorf("%d devices, %d hostile, strike %s: convicted %v", d.devices, d.coalition, name, convicted)
				}
			}
			if alarms == 0 {
				t.Errorf("%d devices, strike %s: no alarm, the attack is none", d.devices, name)
			}
		}
	}
}

// A striker that strikes wherever it is is convicted within rounds, together with all others
// of its kind, and nobody else.
func TestStrikersAreFound(t *testing.T) {
	for _, c := range []struct {
		drill
		within int // rounds
	}{
		{drill{devices: 64, coalition: 1, declared: 4, shard: 10}, 25},
		{drill{devices: 64, coalition: 4, declared: 4, shard: 10}, 40},
		{drill{devices: 1000, coalition: 50, declared: 50, shard: 12}, 25},
		{drill{devices: 24, coalition: 1, declared: 2, shard: 12}, 45},
		{drill{devices: 16, coalition: 1, declared: 1, shard: 8}, 16},
	} {
		c.strikes = func(*rand.Rand, int, []int) bool { return true }
		last := 0
		for seed := range uint64(10) {
			convicted, _ := c.play(t, seed, c.within)
			for _, at := range convicted {
				last = max(last, at)
			}
			if wrong := honest(c.drill, convicted); wrong > 0 || len(convicted) != c.coalition {
				t.Errorf("%d devices, seed %d: of %d strikers %v are convicted, %d of them wrongly",
					c.devices, seed, c.coalition, convicted, wrong)
			}
		}
		t.Logf("%d strikers of %d devices in shards of %d: the last is convicted in round %d of %d", c.coalition, c.devices, c.shard, last, c.within)
	}
}

// A striker that strikes less often than the declared share could in any device's company is
// convicted by cover: no others were in all of its alarms.
func TestRareStrikersAreFound(t *testing.T) {
	d := drill{devices: 64, coalition: 1, declared: 4, shard: 10}
	d.strikes = func(r *rand.Rand, _ int, _ []int) bool { return r.Float64() < 0.25 }
	found := 0
	for seed := range uint64(10) {
		convicted, _ := d.play(t, seed, 400)
		if honest(d, convicted) > 0 {
			t.Errorf("seed %d: %v", seed, convicted)
		}
		found += len(convicted)
	}
	if found < 9 {
		t.Errorf("of 10 strikers that strike in a quarter of their rounds %d are found", found)
	}
}

// The weight of an innocent device passes its limit with the stated probability at most,
// although hostile devices strike in its company whenever they can.
func TestWeightOfTheInnocent(t *testing.T) {
	const rounds, trials = 200, 4000
	for _, p := range []float64{0.05, 0.3, 0.9} {
		past := 0
		rnd := rand.New(rand.NewPCG(7, math.Float64bits(p)))
		for range trials {
			b := Trace{on: true, begun: 1, weight: map[*Device]weight{}}
			d := &Device{}
			for range rounds {
				s := Shard{Dealt: []*Device{d}, Company: p}
				if rnd.Float64() < p {
					s.Sum = s.Dealt
				}
				if b.weigh([]Shard{s}); b.weight[d].mean() > math.Log(20) {
					past++
					break
				}
			}
		}
		if limit := trials/20.0 + 4*math.Sqrt(trials/20.0); float64(past) > limit {
			t.Errorf("company %v: %d of %d pass a limit of 1/20", p, past, trials)
		}
	}
}

// Where a shard is all but certain to hold a hostile device, alarms and quiet rounds say next to nothing; what they say stays
// a number, which is kept over restarts.
func TestWeightsAreFinite(t *testing.T) {
	for _, company := range []float64{0, 1 - 0x1p-52, 1 - 0x1p-53, 1} {
		a, b := &Device{N: 0}, &Device{N: 1}
		var tr Trace
		loud := []Shard{{Dealt: []*Device{a}, Sum: []*Device{a}, Company: company}, {Dealt: []*Device{b}, Company: company}}
		for range 50 {
			tr.Take(loud, 1, 2)
		}
		if _, err := tr.Text(); err != nil {
			t.Errorf("company %v: %v", company, err)
		}
		for _, d := range []*Device{a, b} {
			if m := tr.weight[d].mean(); math.IsNaN(m) || math.IsInf(m, 0) {
				t.Errorf("company %v: weight %v", company, m)
			}
		}
	}
}

// Hostile devices may have a round end before its sums are looked at. It counts as one in which nobody struck: of an honest
// device that they strike beside, and whose other rounds they end, the weight stays that of its company.
func TestEndedRoundsCount(t *testing.T) {
	const p = 0.25
	a, b := &Device{N: 0}, &Device{N: 1}
	var with, without Trace
	strike := []Shard{{Dealt: []*Device{a, b}, Sum: []*Device{a, b}, Company: p}}
	ended := []Shard{{Dealt: []*Device{a, b}, Company: p}}
	for i := range 100 {
		if i%4 == 0 {
			with.Take(strike, 2, 10)
			without.Take(strike, 2, 10)
		} else {
			with.Pass(ended)
		}
	}
	if m := with.weight[a].mean(); m > 0 {
		t.Errorf("an honest device that struck as often as its company would weighs %v", m)
	}
	if m := without.weight[a].mean(); m < 5 {
		t.Errorf("the test shows nothing: %v without the rounds that were ended", m)
	}
	var off Trace
	if off.Pass(ended); off.Tracing() {
		t.Error("an ended round begins a trace")
	}
}

// A device that is pardoned begins anew: the alarms of the time before convict it no more.
func TestPardonForgives(t *testing.T) {
	all := []*Device{{N: 0}, {N: 1}, {N: 2}, {N: 3}}
	var tr Trace
	strike := func(with int) []*Device {
		in := []*Device{all[0], all[with]}
		return tr.Take([]Shard{{Dealt: in, Sum: in, Company: 0.3}}, 1, 4)
	}
	strike(1)
	if guilty := strike(2); len(guilty) != 1 || guilty[0] != all[0] {
		t.Fatalf("convicted %v", guilty)
	}
	tr.Forgive(all[0])
	if guilty := strike(3); len(guilty) > 0 {
		t.Errorf("a pardoned device is convicted by %d alarms", len(tr.alarms))
	}
}

// A trace ends after quiet rounds, and each asks for more than the one before.
func TestTracesEnd(t *testing.T) {
	a, b := &Device{N: 0}, &Device{N: 1}
	loud := []Shard{{Dealt: []*Device{a, b}, Sum: []*Device{a, b}, Company: 0.5}}
	quiet := []Shard{{Dealt: []*Device{a, b}, Company: 0.5}}
	var tr Trace
	for begun := 1; begun <= 3; begun++ {
		tr.Take(loud, 2, 10)
		for range traceRounds {
			if tr.Take(quiet, 2, 10); !tr.Tracing() {
				t.Fatal("a trace ends early")
			}
		}
		if tr.Take(quiet, 2, 10); tr.Tracing() || tr.begun != begun || len(tr.alarms) > 0 {
			t.Errorf("after %d quiet rounds %+v", traceRounds+1, tr)
		}
	}
}

// What is kept of alarms is bounded, and a restart forgets nothing of it.
func TestTraceIsKept(t *testing.T) {
	f := New()
	var all []*Device
	for i := range 600 {
		all = append(all, f.Add([32]byte{byte(i), byte(i >> 8), 1}))
	}
	var tr Trace
	for i := range 20 {
		in := all[i : i+500]
		tr.Take([]Shard{{Dealt: in, Sum: in, Company: 0.5}}, 30, 600)
	}
	if places := 500 * len(tr.alarms); places > maxPlaces || places < maxPlaces-500 {
		t.Errorf("%d places of alarms are kept", places)
	}
	text, err := tr.Text()
	if err != nil {
		t.Fatal(err)
	}
	var again Trace
	if err := again.Resume(text, f); err != nil {
		t.Fatal(err)
	}
	if after, err := again.Text(); err != nil || after != text {
		t.Errorf("the trace is another after a restart, %v", err)
	}
	// Devices that were forgotten keep their places.
	fewer := New()
	for _, d := range all[:50] {
		fewer.Add(d.ID)
	}
	if err := again.Resume(text, fewer); err != nil || len(again.alarms[0]) != 500 {
		t.Errorf("of forgotten devices %d places are left, %v", len(again.alarms[0]), err)
	}
	if foremost, alarms := again.Foremost(3); len(foremost) != 3 || foremost[0].Alarms != alarms {
		t.Errorf("foremost %+v of %d", foremost, alarms)
	}
	// One that an earlier version wrote says nothing.
	if err := again.Resume(`{"Quiet":3,"Never":{"Rounds":1},"Suspect":{"00":{"Rounds":2}}}`, f); err != nil || again.Tracing() {
		t.Errorf("%+v, %v", again, err)
	}
}

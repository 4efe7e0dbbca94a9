package round

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func config(n, floor, quorum int) Config {
	cfg := Config{Floor: floor, Enough: 1}
	for i := range n {
		cfg.Cohort = append(cfg.Cohort, Device(i))
	}
	for s := range cfg.Limits {
		cfg.Limits[s] = Limit{Timeout: time.Second, Quorum: quorum}
	}
	return cfg
}

func TestNewRefuses(t *testing.T) {
	twice := config(3, 2, 2)
	twice.Cohort[2] = 0
	noFloor := config(3, 0, 2)
	noTimeout := config(3, 2, 2)
	noTimeout.Limits[Sharing].Timeout = 0
	noQuorum := config(3, 2, 0)
	noneEnough := config(3, 2, 2)
	noneEnough.Enough = 0
	tooMuch := config(3, 2, 2)
	tooMuch.Enough = 1.5
	noGrace := config(3, 2, 2)
	noGrace.Enough = 0.5
	for name, cfg := range map[string]Config{
		"duplicate device": twice, "no floor": noFloor, "no timeout": noTimeout, "no quorum": noQuorum,
		"nothing is enough": noneEnough, "more than all": tooMuch, "no grace": noGrace,
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// driver carries out effects against a machine and checks, after each, what
// must hold in every round.
type driver struct {
	t *testing.T
	m *Machine
	r *rand.Rand

	answers []Event       // what the effects given so far are answered with, some time
	armed   map[int]Await // by shard: the deadline that runs
	stored  map[int]bool  // by shard: its survivor set
	asked   bool          // for the intent
	intent  bool          // it is stored
	u       map[int][][]Device
	failed  map[int]bool

	released  []int
	releases  int
	charged   bool
	finished  *Finish
	noiseOnly bool
}

func newDriver(t *testing.T, cfg Config, r *rand.Rand) *driver {
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &driver{t: t, m: m, r: r, armed: map[int]Await{}, stored: map[int]bool{}, u: map[int][][]Device{}, failed: map[int]bool{}}
}

// answer gives one answer that is due, in any order; false where there is none.
func (d *driver) answer() bool {
	if len(d.answers) == 0 {
		return false
	}
	i := d.r.IntN(len(d.answers))
	ev := d.answers[i]
	d.answers = slices.Delete(d.answers, i, i+1)
	if s, ok := ev.(Stored); ok {
		if s.Shard == Whole {
			d.intent = true
		} else {
			d.stored[s.Shard] = true
		}
	}
	d.step(ev)
	return true
}

// settle answers all that is due.
func (d *driver) settle() {
	for d.finished == nil && d.answer() {
	}
}

func (d *driver) step(ev Event) {
	d.t.Helper()
	before := d.m.State()
	for _, e := range d.m.Take(ev) {
		if d.finished != nil {
			d.t.Fatalf("effect %T after Finish", e)
		}
		switch e := e.(type) {
		case Await:
			if was, ok := d.armed[e.Shard]; ok && was.State > e.State {
				d.t.Fatalf("shard %d goes back from %v to %v", e.Shard, was.State, e.State)
			}
			d.armed[e.Shard] = e
		case Cut:
			delete(d.armed, Whole)
			ds := slices.Clone(e.Devices)
			d.r.Shuffle(len(ds), func(i, j int) { ds[i], ds[j] = ds[j], ds[i] })
			k := min(len(ds), 1+d.r.IntN(3))
			var shards []Shard
			for i := range k {
				part := ds[i*len(ds)/k : (i+1)*len(ds)/k]
				shards = append(shards, Shard{part, len(part)/2 + 1})
				d.u[i] = [][]Device{part}
			}
			d.answers = append(d.answers, Sharded{Shards: shards})
		case DeliverShares:
			d.narrow(e.Shard, e.Members)
		case PersistSurvivors:
			delete(d.armed, e.Shard)
			d.answers = append(d.answers, Stored{e.Shard})
		case AnnounceSurvivors:
			if !d.stored[e.Shard] {
				d.t.Fatal("survivors announced before they were stored")
			}
			d.narrow(e.Shard, e.Members)
		case PersistIntent:
			if d.asked {
				d.t.Fatal("the intent is stored twice")
			}
			d.asked = true
			d.answers = append(d.answers, Stored{Whole})
		case SendSignatures:
			if !d.intent {
				d.t.Fatal("unmasking asked for before the intent was stored")
			}
			d.narrow(e.Shard, e.Members)
		case FailShard:
			if d.failed[e.Shard] {
				d.t.Fatalf("shard %d fails twice", e.Shard)
			}
			d.failed[e.Shard] = true
			delete(d.armed, e.Shard)
		case Release:
			d.releases++
			d.released, d.noiseOnly = e.Shards, e.NoiseOnly
			if !d.intent || d.releases > 1 || len(e.Shards) == 0 != e.NoiseOnly {
				d.t.Fatalf("release: intent %v, %+v, number %d", d.intent, e, d.releases)
			}
			for _, s := range e.Shards {
				if d.failed[s] || len(d.u[s]) != 4 {
					d.t.Fatalf("release of shard %d, failed %v, after %d turns", s, d.failed[s], len(d.u[s]))
				}
			}
			if d.r.IntN(8) == 0 {
				d.answers = append(d.answers, ReleaseFailed{"chance"})
			} else {
				d.answers = append(d.answers, Released{})
			}
		case Charge:
			d.charged = true
		case Finish:
			d.finished = &e
		}
	}
	if d.m.State() < before {
		d.t.Fatalf("state went back from %v to %v", before, d.m.State())
	}
	d.count()
}

// count holds the machine's counters against a walk over the cohort: the plain
// twin of who holds a state open.
func (d *driver) count() {
	d.t.Helper()
	gone := 0
	groups := append([]*group{}, d.m.shards...)
	if d.m.shards == nil {
		groups = append(groups, &d.m.cohort)
	}
	at := [numStates]int{}
	for _, g := range groups {
		answered, open := 0, 0
		for _, x := range g.order {
			switch mb := d.m.members[x]; {
			case mb.out:
			case mb.any && mb.answered == g.state:
				answered++
			case !mb.lost:
				open++
			}
		}
		if d.m.started && g.state.Waits() && (answered != g.answered || open != g.open) {
			d.t.Fatalf("shard %d in %v: counts %d answered, %d open; the members %d and %d", g.index, g.state, g.answered, g.open, answered, open)
		}
		if g.index != Whole && !g.failed {
			at[g.state]++
		}
	}
	for _, mb := range d.m.members {
		if mb.out || mb.lost {
			gone++
		}
	}
	if gone != d.m.gone || at != d.m.at {
		d.t.Fatalf("counts %d gone, shards at %v; the members %d, %v", d.m.gone, d.m.at, gone, at)
	}
}

func (d *driver) narrow(shard int, members []Device) {
	d.t.Helper()
	sets := d.u[shard]
	for _, x := range members {
		if !slices.Contains(sets[len(sets)-1], x) {
			d.t.Fatalf("shard %d: device %d is not in %v", shard, x, sets[len(sets)-1])
		}
	}
	if len(members) < len(sets[0])/2+1 {
		d.t.Fatalf("shard %d goes on with %d of %d", shard, len(members), len(sets[0]))
	}
	d.u[shard] = append(sets, slices.Clone(members))
}

// expire lets a running deadline pass; false where none runs.
func (d *driver) expire() bool {
	shards := slices.Sorted(maps.Keys(d.armed))
	if len(shards) == 0 {
		return false
	}
	a := d.armed[shards[d.r.IntN(len(shards))]]
	delete(d.armed, a.Shard)
	d.step(Deadline{a.Shard, a.State})
	return true
}

// TestRandomEvents plays random events, lawful and not, answers in any order, and
// checks the rules of the package doc in every run. When the events are over,
// deadlines alone must end the round.
func TestRandomEvents(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(6000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := r.IntN(13)
		cfg := config(n, 1+r.IntN(3), 1+r.IntN(3))
		cfg.Drawn = r.IntN(2) == 0
		cfg.Enough, cfg.Grace = []float64{1, 0.5, 0.3}[r.IntN(3)], time.Millisecond
		if cfg.Drawn {
			cfg.Enough = 1
		}
		d := newDriver(t, cfg, r)
		m := d.m
		d.step(Start{})
		diligence := r.IntN(10)
		for steps := 0; d.finished == nil && steps < 300; steps++ {
			dev := Device(r.IntN(n + 1))
			turn := m.State()
			if mb := m.members[dev]; mb != nil {
				turn = mb.group.state
			}
			switch x := r.IntN(46); {
			case x < 22+diligence:
				d.step(Received{dev, turn})
			case x < 33:
				d.step(Received{dev, State(r.IntN(int(numStates)))})
			case x < 35:
				d.step(Lost{dev})
			case x < 36:
				d.step(Back{dev})
			case x < 37:
				before := m.Answered(dev)
				d.step(Expelled{dev})
				d.step(Back{dev})
				if mb := m.members[dev]; mb != nil && m.State() < Done && (m.Wants(dev, turn) == Accepted || m.Answered(dev) != before || !mb.gone()) {
					t.Fatalf("seed %d: device %d was expelled and is wanted", seed, dev)
				}
			case x < 38:
				d.step(Deadline{r.IntN(4) - 1, State(r.IntN(int(numStates)))})
			case x < 39:
				d.expire()
			case x < 45:
				d.answer()
			case r.IntN(20) == 0:
				d.step(Abort{"chance"})
			case r.IntN(5) == 0:
				d.step(ShardFailed{r.IntN(4) - 1, "chance"})
			}
		}
		// Four turns of at most three shards, and two before the cut.
		for steps := 0; d.finished == nil; steps++ {
			if d.settle(); d.finished == nil && !d.expire() || steps > 14 {
				t.Fatalf("seed %d: the round does not end in %v", seed, m.State())
			}
		}
		f := *d.finished
		if f.Charged != (d.asked || cfg.Drawn) {
			t.Fatalf("seed %d: charged %v, intent %v, drawn %v", seed, f.Charged, d.asked, cfg.Drawn)
		}
		if cfg.Drawn && !d.charged && d.releases == 0 {
			t.Fatalf("seed %d: a drawn round ended free of charge: %+v", seed, f)
		}
		if d.charged && (f.State != Abandoned || d.released != nil && f.Reason != "chance") {
			t.Fatalf("seed %d: charged without release, but %v released %v", seed, f.State, d.released)
		}
		if f.State == Done && d.releases != 1 {
			t.Fatalf("seed %d: done without release", seed)
		}
		if d.noiseOnly && n >= cfg.Floor && (!cfg.Drawn || len(d.u) > 0) {
			t.Fatalf("seed %d: noise only with %d of floor %d", seed, n, cfg.Floor)
		}
		if n < cfg.Floor && !d.noiseOnly && f.Reason != "chance" {
			t.Fatalf("seed %d: %d below floor %d ended as %+v", seed, n, cfg.Floor, f)
		}
		key := f.State.String()
		if d.charged {
			key += " charged"
		}
		ends[key]++
		if m.hurried {
			ends["hurried"]++
		}
		if len(d.failed) > 0 && len(d.released) > 0 {
			ends["shards failed and released"]++
		}
	}
	for _, want := range []string{"done", "abandoned", "abandoned charged", "hurried", "shards failed and released"} {
		if ends[want] < 20 {
			t.Errorf("only %d runs ended as %q: the test explores too little (%v)", ends[want], want, ends)
		}
	}
}

// TestDeadlinesAlone: whatever was answered, deadlines alone end the round.
func TestDeadlinesAlone(t *testing.T) {
	for stop := Gathering; stop <= Unmasking; stop++ {
		d := newDriver(t, config(4, 2, 2), rand.New(rand.NewPCG(1, 7)))
		d.step(Start{})
		for s := Gathering; s < stop; s++ {
			for dev := range Device(4) {
				d.step(Received{dev, s})
			}
			d.settle()
		}
		if d.m.State() != stop {
			t.Fatalf("in %v, not %v", d.m.State(), stop)
		}
		d.step(Deadline{d.m.Shard(0), stop - 1})
		if d.finished != nil {
			t.Fatalf("a stale deadline ended %v", stop)
		}
		for d.finished == nil && d.expire() {
		}
		if d.finished == nil || d.finished.Charged != (stop == Unmasking) {
			t.Fatalf("deadlines in %v: %+v", stop, d.finished)
		}
	}
}

// TestTooFewOfADrawnCohort: with too few present or too few keys, coins that fell
// are paid for by noise, as for a cohort that was drawn too small; later ends are
// charged. Without coins nothing was flipped that an end could favour.
func TestTooFewOfADrawnCohort(t *testing.T) {
	for stop := Gathering; stop <= Confirming; stop++ {
		for _, drawn := range []bool{true, false} {
			cfg := config(4, 2, 3)
			cfg.Drawn = drawn
			d := newDriver(t, cfg, rand.New(rand.NewPCG(1, 1)))
			answer := func(dev Device, turn State) {
				d.step(Received{dev, turn})
				d.settle()
			}
			d.step(Start{})
			for s := Gathering; s < stop; s++ {
				for dev := range Device(4) {
					answer(dev, s)
				}
			}
			if stop <= Keying {
				answer(0, stop)
			}
			for d.finished == nil && d.expire() {
				d.settle()
			}
			switch f := d.finished; {
			case f == nil:
				t.Errorf("%v: the round goes on with one device", stop)
			case !drawn && (f.Charged || d.releases > 0 || d.charged):
				t.Errorf("%v without coins: %+v, %d releases", stop, f, d.releases)
			case drawn && stop <= Keying && (!d.noiseOnly || d.releases != 1 || !f.Charged):
				t.Errorf("%v: %+v, %d releases, noise only %v", stop, f, d.releases, d.noiseOnly)
			case drawn && stop > Keying && (!d.charged || d.releases > 0 || f.State != Abandoned):
				t.Errorf("%v: %+v, charged %v, %d releases", stop, f, d.charged, d.releases)
			}
		}
	}
}

func TestCounts(t *testing.T) {
	m, err := New(config(4, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	m.Take(Start{})
	counts := func(when string, in, dropped, absent int) {
		t.Helper()
		if i, d, a := m.Counts(); i != in || d != dropped || a != absent {
			t.Errorf("%s: %d in, %d dropped, %d absent; want %d, %d, %d", when, i, d, a, in, dropped, absent)
		}
	}
	m.Take(Lost{0})
	counts("one is not there", 3, 0, 1)
	for d := range Device(4) {
		m.Take(Received{d, Gathering})
	}
	counts("it came", 4, 0, 0)
	m.Take(Lost{3})
	counts("one that was there is lost", 3, 1, 0)
	m.Take(Back{3})
	counts("it is back", 4, 0, 0)
	if m.Shard(0) != -1 || m.Shard(9) != -1 || m.Charged() {
		t.Error("a shard or a charge before the cut")
	}
	m.Take(Deadline{Whole, Keying})
	if m.State() != Abandoned {
		t.Errorf("nobody sent keys, but %v", m.State())
	}
}

package round

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func config(n, floor, quorum int) Config {
	cfg := Config{Floor: floor}
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
	for name, cfg := range map[string]Config{
		"duplicate device": twice, "no floor": noFloor, "no timeout": noTimeout, "no quorum": noQuorum,
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

	stored    bool // survivor sets
	intent    bool
	u         map[int][][]Device // shard -> U1, U2, U3, U4
	released  bool
	charged   bool
	finished  *Finish
	noiseOnly bool
}

func (d *driver) step(ev Event) {
	before := d.m.State()
	for _, e := range d.m.Step(ev) {
		if d.finished != nil {
			d.t.Fatalf("effect %T after Finish", e)
		}
		switch e := e.(type) {
		case Cut:
			ds := slices.Clone(e.Devices)
			d.r.Shuffle(len(ds), func(i, j int) { ds[i], ds[j] = ds[j], ds[i] })
			k := 1 + d.r.IntN(2)
			var shards []Shard
			for i := range k {
				part := ds[i*len(ds)/k : (i+1)*len(ds)/k]
				shards = append(shards, Shard{part, len(part)/2 + 1})
				d.u[i] = [][]Device{part}
			}
			d.step(Sharded{shards})
		case DeliverShares:
			d.narrow(e.Shard, e.Members)
		case PersistSurvivors:
			d.stored = true
			d.step(Stored{})
		case AnnounceSurvivors:
			if !d.stored {
				d.t.Fatal("survivors announced before they were stored")
			}
			d.narrow(e.Shard, e.Members)
		case PersistIntent:
			d.intent = true
			d.step(Stored{})
		case SendSignatures:
			if !d.intent {
				d.t.Fatal("unmasking asked for before the intent was stored")
			}
			d.narrow(e.Shard, e.Members)
		case Release:
			if !d.intent || d.released {
				d.t.Fatalf("release: intent %v, released before %v", d.intent, d.released)
			}
			d.released, d.noiseOnly = true, e.NoiseOnly
			if d.r.IntN(8) == 0 {
				d.step(ReleaseFailed{"chance"})
			} else {
				d.step(Released{})
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
}

func (d *driver) narrow(shard int, members []Device) {
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

// TestRandomEvents plays random events, lawful and not, and checks the rules of
// the package doc in every run.
func TestRandomEvents(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := r.IntN(9)
		cfg := config(n, 1+r.IntN(3), 1+r.IntN(3))
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		d := &driver{t: t, m: m, r: r, u: map[int][][]Device{}}
		d.step(Start{})
		diligence := r.IntN(10)
		for steps := 0; d.finished == nil; steps++ {
			if steps > 2000 {
				t.Fatalf("seed %d: the round does not end in %v", seed, m.State())
			}
			dev := Device(r.IntN(n + 1))
			switch x := r.IntN(40); {
			case x < 22+diligence:
				d.step(Received{dev, m.State()})
			case x < 33:
				d.step(Received{dev, State(r.IntN(int(numStates)))})
			case x < 35:
				d.step(Lost{dev})
			case x < 37:
				d.step(Back{dev})
			case x < 39:
				d.step(Deadline{State(r.IntN(int(numStates)))})
			case r.IntN(20) == 0:
				d.step(Abort{"chance"})
			case r.IntN(5) == 0:
				d.step(ShardFailed{r.IntN(3), "chance"})
			}
		}
		f := *d.finished
		if f.Charged != d.intent {
			t.Fatalf("seed %d: charged %v, intent %v", seed, f.Charged, d.intent)
		}
		if d.charged && (f.State != Abandoned || d.released) {
			t.Fatalf("seed %d: charged without release, but %v released %v", seed, f.State, d.released)
		}
		if f.State == Done && !d.released {
			t.Fatalf("seed %d: done without release", seed)
		}
		if d.noiseOnly && n >= cfg.Floor {
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
	}
	for _, want := range []string{"done", "abandoned", "abandoned charged"} {
		if ends[want] < 20 {
			t.Errorf("only %d runs ended as %q: the test explores too little (%v)", ends[want], want, ends)
		}
	}
}

// TestDeadlinesAlone: whatever was answered, deadlines alone end the round.
func TestDeadlinesAlone(t *testing.T) {
	for stop := Gathering; stop <= Unmasking; stop++ {
		m, err := New(config(4, 2, 2))
		if err != nil {
			t.Fatal(err)
		}
		d := &driver{t: t, m: m, r: rand.New(rand.NewPCG(1, 1)), u: map[int][][]Device{}}
		d.step(Start{})
		for s := Gathering; s < stop; s++ {
			for dev := range Device(4) {
				d.step(Received{dev, s})
			}
		}
		if m.State() != stop {
			t.Fatalf("in %v, not %v", m.State(), stop)
		}
		d.step(Deadline{stop - 1})
		if d.finished != nil {
			t.Fatalf("a stale deadline ended %v", stop)
		}
		d.step(Deadline{stop})
		if d.finished == nil || d.finished.Charged != (stop == Unmasking) {
			t.Fatalf("deadline in %v: %+v", stop, d.finished)
		}
	}
}

func TestCounts(t *testing.T) {
	m, err := New(config(4, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	m.Step(Start{})
	for d := range Device(4) {
		m.Step(Received{d, Gathering})
	}
	m.Step(Lost{3})
	if in, dropped := m.Counts(); in != 3 || dropped != 1 {
		t.Errorf("counts %d in, %d dropped", in, dropped)
	}
	m.Step(Back{3})
	if in, dropped := m.Counts(); in != 4 || dropped != 0 {
		t.Errorf("counts after return %d in, %d dropped", in, dropped)
	}
	if m.Shard(0) != -1 || m.Shard(9) != -1 || m.Charged() {
		t.Error("a shard or a charge before the cut")
	}
	m.Step(Deadline{Keying})
	if m.State() != Abandoned {
		t.Errorf("nobody sent keys, but %v", m.State())
	}
}

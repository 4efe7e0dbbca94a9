package dp

import (
	"errors"
	"math"
	"testing"
)

// TestSeenEvents: what a coalition sees, and the hits of a simulated population, are in the ledger's
// encoding, in one way only, and are checked.
func TestSeenEvents(t *testing.T) {
	spec := ReleaseSpec{Round: 3, SamplingRate: 0.1, NoiseMultiplier: 2, NoiseScale: 0.5, SimulatedRate: 0.01, B2: 10_000}
	for name, change := range map[string]func(*ReleaseSpec){
		"coalition": func(r *ReleaseSpec) { r.Coalition = Coalition{0.05, 0.5} },
		"simulated": func(r *ReleaseSpec) { r.SimulatedHit = 1 },
		"all": func(r *ReleaseSpec) {
			r.Coalition, r.SimulatedHit, r.Hit, r.ProviderRate, r.Hidden = Coalition{0.05, 1}, 0.25, 0.125, 0.5, true
		},
		"own": func(r *ReleaseSpec) {
			r.NoiseScale, r.SimulatedRate = 1, 0
			r.Coalition, r.Own = Coalition{0.05, 0.5}, OwnNoise{Multiplier: 1, Honest: 4, Apart: 2}
		},
	} {
		r := spec
		change(&r)
		e, err := r.Event(10)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := e.MarshalBinary()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var back Event
		if err := back.UnmarshalBinary(b); err != nil || back != e {
			t.Errorf("%s: %+v comes back as %+v, %v", name, e, back, err)
		}
		for cut := range b {
			if err := back.UnmarshalBinary(b[:cut]); err == nil {
				t.Errorf("%s: %d of %d bytes are read", name, cut, len(b))
			}
		}
		if e.Own.Multiplier > 0 {
			u, err := e.apart()
			if err != nil || u.Check() != nil || u.Coalition != (Coalition{}) {
				t.Errorf("%s: against the coordinator %+v, %v, %v", name, u, u.Check(), err)
			}
		}
	}
	// Of an event of which nothing shows there is one encoding, the one without.
	e, err := spec.Event(10)
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	b[0] += seenVersions
	if err := e.UnmarshalBinary(append(b, make([]byte, seenSize)...)); !errors.Is(err, ErrEvent) {
		t.Errorf("an empty claim is read: %v", err)
	}
	for name, change := range map[string]func(*Event){
		"a share of 1":       func(e *Event) { e.Coalition = Coalition{1, 0.5} },
		"sees more than all": func(e *Event) { e.Coalition = Coalition{0.1, 1.5} },
		"sees nothing":       func(e *Event) { e.Coalition = Coalition{0.1, 0} },
		"nobody sees":        func(e *Event) { e.Coalition = Coalition{0, 0.5} },
		"no coin":            func(e *Event) { e.SamplingRate, e.Coalition = 1, Coalition{0.1, 0.5} },
		"hit twice":          func(e *Event) { e.NoiseScale, e.SimulatedRate, e.SimulatedHit = 0.5, 0.1, 1.5 },
		"hit of none":        func(e *Event) { e.SimulatedHit = 0.5 },
		"no simulated coin":  func(e *Event) { e.NoiseScale, e.SimulatedRate, e.SimulatedHit = 0.5, 1, 0.5 },
		"without noise": func(e *Event) {
			*e = Event{Mechanism: Mechanism{SamplingRate: 1}, Count: 1, Kind: KindUnnoised, NoiseScale: 1, Dim: 3, SimulatedHit: 0.5}
		},
	} {
		e := Rounds(Mechanism{SamplingRate: 0.1, NoiseMultiplier: 1}, 1)
		change(&e)
		if err := e.Check(); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSimulatedHits: a simulated population has its own hits and no rosters; those who take part
// have theirs.
func TestSimulatedHits(t *testing.T) {
	e := Rounds(Mechanism{SamplingRate: 0.1, NoiseMultiplier: 2}, 7)
	e.NoiseScale, e.SimulatedRate, e.SimulatedHit, e.Hit, e.Coalition = 0.5, 0.01, 0.25, 0.125, Coalition{0.1, 0.5}
	for of, want := range map[View]Hit{
		{}:                                     {0.125, 1, 0.1},
		{Observer: Colluding, Simulated: true}: {0.25, 1, 0.01},
		{Observer: Public, Simulated: true}:    {0.25, 1, 0.01},
		{Observer: Participants}:               {},
	} {
		c, err := Compose([]Event{e}, of)
		if err != nil || len(c.Parts) != 1 || c.Parts[0].Hit != want {
			t.Errorf("%+v: %+v, want %+v; %v", of, c.Parts, want, err)
		}
	}
	if got := Public.shows(0.1, Coalition{0.1, 0.5}); got != 0.1 {
		t.Errorf("the public is shown %v", got)
	}
	for _, name := range []string{"public", "coalition", "participants"} {
		if o, err := ParseObserver(name); err != nil || string(o) != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "coordinator", "Public"} {
		if _, err := ParseObserver(name); !errors.Is(err, ErrObserver) {
			t.Errorf("%q is an observer", name)
		}
	}
}

// TestAHitOrACoalition: a hit, or a hostile device in the shard, by every number of honest and of
// hostile devices that are drawn: no more likely than is accounted, whether a cohort is below its
// floor, which few hostile devices make likelier, or a shard misses its threshold, which many do.
func TestAHitOrACoalition(t *testing.T) {
	const hostile = 6
	for name, c := range map[string]struct {
		a   Attendance
		hit func(a Attendance, honest, hostile int) float64 // given who is drawn
		of  func(a Attendance) float64                      // what is accounted
	}{
		"below the floor": {
			Attendance{Ready: 31, Hostile: hostile, Rate: 0.2, Groups: 1, Floor: 6},
			func(a Attendance, honest, hostile int) float64 {
				if honest+hostile < a.Floor {
					return 1
				}
				return 0
			},
			func(a Attendance) float64 { return FloorDelta(a.Ready, a.Rate, a.Floor, 1) / a.Rate },
		},
		"below a threshold": {
			Attendance{Ready: 31, Hostile: hostile, Rate: 0.5, Groups: 2, Dropout: 0.1, Floor: 3, Most: 16, Threshold: func(n int) int { return n/2 + 1 }},
			func(a Attendance, honest, hostile int) float64 {
				n := honest + hostile + 1
				if n < a.Floor || n > a.Most {
					return 1
				}
				return 1 - BinomialTail(honest, 1-a.Dropout, max(a.Floor, a.Threshold(n)))
			},
			Attendance.Hit,
		},
	} {
		p, honest := c.a.Rate/float64(c.a.Groups), c.a.Ready-1-hostile
		either, both, hit, seen := 0.0, 0.0, 0.0, 1-math.Pow(1-p, hostile)
		for h := 0; h <= honest; h++ {
			for x := 0; x <= hostile; x++ {
				chance, tips := math.Exp(logBinomial(honest, h, p)+logBinomial(hostile, x, p)), c.hit(c.a, h, x)
				if hit += chance * tips; x > 0 {
					both += chance * tips
					tips = 1
				}
				either += chance * tips
			}
		}
		got := Colluding.shows(c.of(c.a), Coalition{0.2, seen})
		if got < either*(1-1e-9) || got > 1.05*(hit+seen) {
			t.Errorf("%s: shown with probability %v, accounted %v", name, either, got)
		}
		if (name == "below the floor") != (both < 0.9*hit*seen) {
			t.Errorf("%s: both %v, by chance %v: no test", name, both, hit*seen)
		}
	}
}

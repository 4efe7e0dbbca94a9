package accounting

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// Epsilon against a coalition is that of exact mixtures made elsewhere, every number of colluding
// devices in a shard enumerated (lab/bench/dp/coalition.py); the public's is less, the
// participants' more.
func TestCoalitionEpsilon(t *testing.T) {
	b, err := os.ReadFile("testdata/coalition.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Rate, Z, Sees, Epsilon float64
		Rounds                 int
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 5 {
		t.Fatal(err, len(cases))
	}
	for _, c := range cases {
		e := dp.Rounds(dp.Mechanism{SamplingRate: c.Rate, NoiseMultiplier: c.Z}, c.Rounds)
		e.Coalition = dp.Coalition{Share: 0.05, Sees: c.Sees}
		last := 0.0
		for _, of := range []dp.Observer{dp.Public, dp.Colluding, dp.Participants} {
			g, err := Against(of)([]dp.Event{e}, 1e-6, dp.Tight)
			if err != nil {
				t.Fatal(err)
			}
			if g.Observer != of || g.Epsilon <= last {
				t.Errorf("%+v: against %s %v, the one before had %v", c, of, g, last)
			}
			last = g.Epsilon
			if of != dp.Colluding {
				continue
			}
			if math.Abs(g.Epsilon/c.Epsilon-1) > 2e-3 || g.Epsilon < c.Epsilon*(1-5e-4) || g.EpsilonLower > c.Epsilon*(1+2e-3) ||
				g.Coalition != 0.05 || g.Adjacency != dp.ZeroOut(dp.AdjacencyAddRemove) || g.Sampling != dp.SamplingCoalition {
				t.Errorf("%+v: %v", c, g)
			}
		}
	}
}

// Hits and a coalition show a coin together, never both at once in the worst case; one that surely sees it
// leaves nothing hidden, one that is not there changes nothing.
func TestHitsAndACoalition(t *testing.T) {
	e := dp.Rounds(dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: 2}, 50)
	e.Hit, e.Coalition = 0.2, dp.Coalition{Share: 0.1, Sees: 0.25}
	both := dp.Rounds(e.Mechanism, 50)
	both.Hit = 0.2 + 0.25
	epsilon := func(of dp.Observer, e dp.Event) float64 {
		g, err := Against(of)([]dp.Event{e}, 1e-6, dp.RDP)
		if err != nil {
			t.Fatal(err)
		}
		return g.Epsilon
	}
	if got, want := epsilon(dp.Colluding, e), epsilon(dp.Public, both); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("together %v, want %v", got, want)
	}
	e.Coalition.Sees = 1
	if got, want := epsilon(dp.Colluding, e), epsilon(dp.Participants, e); got != want {
		t.Errorf("a coalition that sees all has %v, participants %v", got, want)
	}
	e.Coalition = dp.Coalition{}
	if got, want := epsilon(dp.Colluding, e), epsilon(dp.Public, e); got != want {
		t.Errorf("no coalition has %v, the public %v", got, want)
	}
}

// Calibration and budget are about the observer that they are asked for.
func TestBudgetOfAnObserver(t *testing.T) {
	event := func(z float64) dp.Event {
		e := dp.Rounds(dp.Mechanism{SamplingRate: 0.05, NoiseMultiplier: z}, 20)
		e.Coalition = dp.Coalition{Share: 0.05, Sees: 0.5}
		return e
	}
	last := 0.0
	for _, of := range []dp.Observer{dp.Public, dp.Colluding, dp.Participants} {
		z, err := CalibrateEvent(2, 1e-6, dp.Tight, of, event)
		if err != nil || z <= last*1.05 {
			t.Fatalf("%s: %v after %v, %v", of, z, last, err)
		}
		b := Budget{Epsilon: 2, Delta: 1e-6, Accountant: dp.Tight, Observer: of}
		g, err := b.Allow(nil, event(z), false)
		if err != nil || g.Epsilon < 1.99 || g.Observer != of {
			t.Errorf("%s: %v, %v", of, g, err)
		}
		if last > 0 {
			if _, err := b.Allow(nil, event(last), false); err == nil {
				t.Errorf("%s: what is enough for another observer is allowed", of)
			}
		}
		last = z
	}
}

// What an epsilon is about is in its text, and in its adjacency: wherever it shows whether a device
// is there, absent is to send zeros; where a device that leaves may decide over others, so much of
// delta hangs on its not doing so because of its data.
func TestWhatAGuaranteeSays(t *testing.T) {
	plain := dp.Rounds(dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: 2}, 50)
	all := dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 8}, 50)
	hit := plain
	hit.Hit = 0.02
	deployed, err := dp.ReleaseSpec{SamplingRate: 0.1, NoiseMultiplier: 2, NoiseScale: 1, B2: 10_000}.Event(10)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		e       dp.Event
		of      dp.Observer
		zeroOut bool
		leaving float64 // -1: not known
	}{
		"planned, hidden":  {plain, dp.Public, false, 0},
		"planned, visible": {plain, dp.Participants, true, 0},
		"no coin":          {all, dp.Public, true, -1},
		"hits":             {hit, dp.Public, true, 50 * 0.1 * 0.02},
		"hits, visible":    {hit, dp.Participants, true, 50 * 0.1 * 0.02},
		"of a ledger":      {deployed, dp.Public, true, 0},
	} {
		g, err := Against(c.of)([]dp.Event{c.e}, 1e-6, dp.RDP)
		if err != nil {
			t.Fatal(err)
		}
		if (g.Adjacency == dp.ZeroOut(dp.AdjacencyAddRemove)) != c.zeroOut || (g.Assumes != "") != (c.leaving != 0) ||
			math.Abs(g.LeavingDelta-max(0, c.leaving)) > 1e-12 {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

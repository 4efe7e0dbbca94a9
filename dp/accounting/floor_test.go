package accounting

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// floorGolden is testdata/floor.json, made by lab/bench/dp/floor.py with scipy,
// dp-accounting and a composition of its own.
type floorGolden struct {
	Q      float64 `json:"q"`
	Rounds int     `json:"rounds"`
	Delta  float64 `json:"delta"`
	Noise  float64 `json:"noise_multiplier"`
	Floor  int     `json:"floor"`
	Draws  int     `json:"draws"`
	Sold   float64 `json:"sold"`
	Online []struct {
		Others        int     `json:"others"`
		Included      float64 `json:"included"`
		Redraw        float64 `json:"redraw"`
		ChargeAtLeast float64 `json:"charge_at_least"`
	} `json:"online"`
	Quorum struct {
		Members int     `json:"members"`
		Delta   float64 `json:"floor_delta"`
		OneLess float64 `json:"floor_delta_one_less"`
		Noise   float64 `json:"noise_multiplier"`
		Epsilon float64 `json:"epsilon"`
	} `json:"quorum"`
	Groups []struct {
		Devices        int     `json:"devices"`
		Groups         int     `json:"groups"`
		Size           int     `json:"size"`
		EpsilonAtLeast float64 `json:"epsilon_at_least"`
		Delta          float64 `json:"delta"`
	} `json:"groups"`
}

func readFloors(t *testing.T) (g floorGolden) {
	t.Helper()
	b, err := os.ReadFile("testdata/floor.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestFloorDecidedByACoin: what a floor on those present costs where a round
// below it is dropped and drawn again, and that charging it is not enough where few
// are there, against figures that were computed outside.
func TestFloorDecidedByACoin(t *testing.T) {
	g := readFloors(t)
	epsilon := func(q, z float64) float64 {
		e, err := Epsilon([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: q, NoiseMultiplier: z}, g.Rounds)}, g.Delta, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		return e.Epsilon
	}
	if e := epsilon(g.Q, g.Noise); math.Abs(e-2) > 1e-4 || math.Abs(e-g.Sold) > 1e-4 {
		t.Errorf("sold as epsilon %v, outside %v", e, g.Sold)
	}
	for i, o := range g.Online {
		// P[a device that is there is in | at least floor are in].
		atLeast := func(k int) float64 { return 1 - dp.CohortFloorFailure(o.Others, g.Q, k, 1) }
		with, without := g.Q*atLeast(g.Floor-1), (1-g.Q)*atLeast(g.Floor)
		in := with / (with + without)
		if math.Abs(in/o.Included-1) > 1e-6 {
			t.Errorf("%d others: included with %v, outside %v", o.Others, in, o.Included)
		}
		got := epsilon(in, g.Noise)
		if math.Abs(got-o.Redraw) > 1e-3 {
			t.Errorf("%d others: drawing again delivers %v, outside %v", o.Others, got, o.Redraw)
		}
		if want := []float64{2.79, 4.66}[i]; got < want {
			t.Errorf("%d others: drawing again delivers %v, want at least %v", o.Others, got, want)
		}
		if o.ChargeAtLeast < 5 {
			t.Errorf("%d others: charging alone is said to deliver %v", o.Others, o.ChargeAtLeast)
		}
	}
}

// TestFloorQuorum: with as many there as the quorum asks for, the exact pair of
// the mechanism with its floor, composed outside, keeps what was sold; and its sums
// of binomials are those of scipy.
func TestFloorQuorum(t *testing.T) {
	g := readFloors(t)
	limit := g.Delta * dp.FloorShare
	n := g.Quorum.Members
	for members, want := range map[int]float64{n: g.Quorum.Delta, n - 1: g.Quorum.OneLess} {
		if got := dp.FloorDelta(members, g.Q, g.Floor, g.Draws); math.Abs(got/want-1) > 1e-6 || (got <= limit) != (members == n) {
			t.Errorf("%d members: the floor adds %v, outside %v, limit %v", members, got, want, limit)
		}
	}
	z, err := CalibrateNoise(2, g.Delta-limit, g.Q, g.Rounds, dp.Tight)
	if err != nil || math.Abs(z/g.Quorum.Noise-1) > 5e-5 { // what a calibration promises
		t.Errorf("noise multiplier %v, golden %v, %v", z, g.Quorum.Noise, err)
	}
	if g.Quorum.Epsilon > 2 || g.Quorum.Epsilon < 1.99 {
		t.Errorf("the mechanism with its floor delivers %v", g.Quorum.Epsilon)
	}
}

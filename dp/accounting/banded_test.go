package accounting

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// Rows of banded noise cost what one Gaussian at their sensitivity does: computed by others, the
// sensitivity over all patterns of participation (lab/bench/dp/banded.py).
func TestBandedEpsilonIsThatOfOneGaussian(t *testing.T) {
	data, err := os.ReadFile("../testdata/banded.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Cases []struct {
			Rows, Band, Separation uint32
			Eighths                uint8
			NoiseMultiplier        float64 `json:"noise_multiplier"`
			Delta, Epsilon         float64
		}
	}
	if err := json.Unmarshal(data, &g); err != nil || len(g.Cases) < 15 {
		t.Fatalf("%d cases, %v", len(g.Cases), err)
	}
	for _, c := range g.Cases {
		all := dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: c.NoiseMultiplier}, int(c.Rows))
		all.Fixed, all.Banded = true, dp.Banded{Band: c.Band, Separation: c.Separation, Eighths: c.Eighths, Row: 1}
		var each []dp.Event
		for row := range uint64(c.Rows) {
			one := all
			one.Count, one.Banded.Row = 1, row+1
			each = append(each, one)
		}
		for _, events := range [][]dp.Event{{all}, each} {
			got, err := VisibleEpsilon(events, c.Delta, dp.Tight)
			if err != nil || got.Accountant != dp.Tight || got.Rounds != int(c.Rows) {
				t.Fatalf("%+v: %s, %v", c, got, err)
			}
			if got.Epsilon < c.Epsilon*(1-1e-9) || got.Epsilon > c.Epsilon*(1+1e-4) || got.EpsilonLower > c.Epsilon*(1+1e-9) {
				t.Errorf("%+v: %v to %v", c, got.EpsilonLower, got.Epsilon)
			}
		}
	}
}

// Calibrated noise keeps all rows within the target, and a budget refuses the row beyond it.
func TestBandedNoiseIsCalibrated(t *testing.T) {
	rows := func(z float64) dp.Event {
		e := dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: z}, 200)
		e.Fixed, e.Banded = true, dp.Banded{Band: 100, Separation: 100, Eighths: 4, Row: 1}
		return e
	}
	z, err := CalibrateEvent(2, 1e-6, dp.Tight, dp.Participants, rows)
	if err != nil {
		t.Fatal(err)
	}
	// mu of epsilon 2 at delta 1e-6 is .44833 (Balle and Wang 2018, solved by scipy).
	want := math.Sqrt(rows(1).Banded.Cost(200)) / 0.44833474
	if math.Abs(z/want-1) > 1e-4 {
		t.Errorf("z = %v, want %v", z, want)
	}
	b := Budget{Epsilon: 2, Delta: 1e-6, Accountant: dp.Tight, Observer: dp.Participants}
	next := rows(z)
	next.Count, next.Banded.Row = 1, 201
	if _, err := b.Allow(nil, rows(z), false); err != nil {
		t.Error(err)
	}
	if g, err := b.Allow([]dp.Event{rows(z)}, next, false); !errors.Is(err, ErrBudget) {
		t.Errorf("a row beyond: %s, %v", g, err)
	}
}

package accounting

import (
	"errors"
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

func TestBudgetStopsBeforeTheRound(t *testing.T) {
	next := testEvent(t, 0)
	for _, acct := range []dp.Accountant{dp.Tight, dp.RDP} {
		max, err := CalibrateRounds(1.5, 1e-6, next.Mechanism, acct)
		if err != nil || max < 10 {
			t.Fatalf("%s: %d rounds, %v", acct, max, err)
		}
		b := Budget{Epsilon: 1.5, Delta: 1e-6, Accountant: acct}
		spent := next
		spent.Count = uint32(max - 2) // discrete noise costs a little: one round of leeway
		g, err := b.Allow([]dp.Event{spent}, next, false)
		if err != nil || g.Epsilon > 1.5 || g.Rounds != max-1 {
			t.Errorf("%s: round %d of %d: %v, %v", acct, max-1, max, g, err)
		}
		spent.Count = uint32(max)
		g, err = b.Allow([]dp.Event{spent}, next, false)
		if !errors.Is(err, ErrBudget) || g.Epsilon <= 1.5 {
			t.Errorf("%s: round %d of %d: %v, %v", acct, max+1, max, g, err)
		}
	}
	if _, err := (Budget{Delta: 1e-6}).Allow(nil, next, false); err == nil {
		t.Error("a budget of nothing was accepted")
	}
}

// The accountant gets what floors leave of delta, and the result is stated at all of it.
func TestBudgetKeepsThePartOfFloors(t *testing.T) {
	asked := 0.0
	b := Budget{Epsilon: 1, Delta: 1e-6, Floor: 1e-8, Accountant: dp.RDP}
	g, err := b.Guarantee(func(_ []dp.Event, delta float64, _ dp.Accountant) (dp.Guarantee, error) {
		asked = delta
		return dp.Guarantee{Delta: delta}, nil
	}, nil)
	if err != nil || asked != 1e-6-1e-8 || g.Delta != 1e-6 || math.Abs(g.FloorDelta/1e-8-1) > 1e-6 {
		t.Errorf("asked at %v; %+v, %v", asked, g, err)
	}
}

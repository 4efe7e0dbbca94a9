package accounting

import (
	"errors"
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

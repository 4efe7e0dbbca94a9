package dp

import (
	"errors"
	"fmt"
)

// ErrBudget reports a round that would pass the privacy budget. Nothing of it
// may be started.
var ErrBudget = errors.New("privacy budget would be passed")

// Budget is what a job may spend in all.
type Budget struct {
	Epsilon    float64
	Delta      float64
	Accountant Accountant
}

// Allow says whether next may follow spent. It returns the guarantee with next
// included, and ErrBudget where that passes the budget: the coordinator asks
// before it starts a round, and the answer holds whatever the round does.
// The delivered guarantee counts, unless simulated is set and the job is
// labelled a simulation.
func (b Budget) Allow(spent []Event, next Event, simulated bool) (Guarantee, error) {
	if !(b.Epsilon > 0) {
		return Guarantee{}, fmt.Errorf("dp: budget epsilon %v, want positive", b.Epsilon)
	}
	events := append(spent[:len(spent):len(spent)], next)
	g, err := account(events, b.Delta, b.Accountant, query{simulated: simulated})
	if err != nil {
		return Guarantee{}, err
	}
	if g.Epsilon > b.Epsilon {
		return g, fmt.Errorf("dp: round %d would bring epsilon to %.6g at delta %.3g, budget %.6g: %w", next.Round, g.Epsilon, g.Delta, b.Epsilon, ErrBudget)
	}
	return g, nil
}

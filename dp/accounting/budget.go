package accounting

import (
	"errors"
	"fmt"

	"github.com/starling-fl/starling/dp"
)

// ErrBudget reports a round that would pass the privacy budget. Nothing of it
// may be started.
var ErrBudget = errors.New("privacy budget would be exceeded")

// Budget limits a job's epsilon at a delta.
type Budget struct {
	Epsilon float64
	Delta   float64
	// Floor is the part of Delta set aside for cohorts below their floor, see [dp.FloorShare]; the
	// accountant gets the rest.
	Floor      float64
	Accountant dp.Accountant
	// Observer is the adversary that the budget holds against; "" is the public, as for a simulated population.
	Observer dp.Observer
}

// Guarantee accounts events with f (Epsilon, VisibleEpsilon or SimulatedEpsilon) at the budget's
// delta without the floors' part, and states the result at the whole delta.
func (b Budget) Guarantee(f func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error), events []dp.Event) (dp.Guarantee, error) {
	g, err := f(events, b.Delta-b.Floor, b.Accountant)
	if err != nil {
		return dp.Guarantee{}, err
	}
	if b.Floor > 0 {
		g = g.Floored(b.Delta)
	}
	return g, nil
}

// Allow returns the guarantee of spent and next together, and ErrBudget if that exceeds the budget.
// The coordinator asks before it starts a round, so that the answer holds whatever the round does.
// The delivered guarantee counts, unless simulated is set and the job is labelled a simulation.
func (b Budget) Allow(spent []dp.Event, next dp.Event, simulated bool) (dp.Guarantee, error) {
	if !(b.Epsilon > 0) {
		return dp.Guarantee{}, fmt.Errorf("accounting: budget epsilon %v, want positive", b.Epsilon)
	}
	events := append(spent[:len(spent):len(spent)], next)
	f := Against(b.Observer)
	if simulated {
		f = SimulatedEpsilon
	}
	g, err := b.Guarantee(f, events)
	if err != nil {
		return dp.Guarantee{}, err
	}
	if g.Epsilon > b.Epsilon {
		return g, fmt.Errorf("accounting: round %d would bring epsilon to %.6g at delta %.3g, budget %.6g: %w", next.Round, g.Epsilon, g.Delta, b.Epsilon, ErrBudget)
	}
	return g, nil
}

package core

import (
	"errors"
	"fmt"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
)

// Costliest returns an event that costs at least as much as any round of the job: epsilon grows as the squared
// sensitivity shrinks, since noise is discrete, and with the coordinates.
func (t *Terms) Costliest() (dp.Event, error) {
	return t.extreme(func(b2, other int64, size, others int) (int64, int) { return min(b2, other), max(size, others) })
}

// Cheapest returns an event that costs at most as much as any round of the job.
func (t *Terms) Cheapest() (dp.Event, error) {
	return t.extreme(func(b2, other int64, size, others int) (int64, int) { return max(b2, other), min(size, others) })
}

// extreme is an event of a squared sensitivity and a size that are chosen of those at the
// least and the largest rank, between which the others lie.
func (t *Terms) extreme(choose func(b2, other int64, size, others int) (int64, int)) (dp.Event, error) {
	ranks := t.Ranks()
	var b2 int64
	size := 0
	for i, rank := range []int{ranks[0], ranks[len(ranks)-1]} {
		v, err := t.Vector(rank, t.Job.Privacy.ClipNorm, [32]byte{})
		if err != nil {
			return dp.Event{}, err
		}
		if i == 0 {
			b2, size = v.B2(), v.Size()
		}
		b2, size = choose(b2, v.B2(), size, v.Size())
	}
	cert := dp.Certificate{Method: dp.MethodPoisson, Rate: t.Job.Cohort.SamplingRate, Population: t.Job.Cohort.Population}
	return t.ReleaseSpec(1, b2, cert).Event(size)
}

// Promise is the cost of all rounds at the costliest rank.
func (t *Terms) Promise() (dp.Guarantees, error) {
	all, err := t.Costliest()
	if err != nil {
		return dp.Guarantees{}, err
	}
	all.Count = uint32(t.Job.Rounds)
	return t.Guarantees([]dp.Event{all})
}

// Guarantees composes events exactly.
func (t *Terms) Guarantees(events []dp.Event) (dp.Guarantees, error) {
	var g dp.Guarantees
	var errs []error
	compose := func(f func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error)) *dp.Guarantee {
		v, err := t.Budget.Guarantee(f, events)
		if err != nil {
			errs = append(errs, fmt.Errorf("core: %w", err))
		}
		return &v
	}
	of := t.Budget.Observer
	g.Delivered = compose(accounting.Against(of))
	if t.Job.VisibleDiffers() && of != dp.Public {
		g.Public = compose(accounting.Epsilon)
	}
	if t.Job.Coalition(t.Quorum) != (dp.Coalition{}) && of != dp.Colluding {
		g.Coalition = compose(accounting.CoalitionEpsilon)
	}
	if t.Job.VisibleDiffers() && of != dp.Participants {
		g.Visible = compose(accounting.VisibleEpsilon)
	}
	if t.Job.Simulated() {
		g.Simulated = compose(accounting.SimulatedEpsilon)
	}
	if t.Own.Multiplier > 0 {
		g.Untrusted = compose(accounting.UntrustedEpsilon)
	}
	return g, errors.Join(errs...)
}

package jobs

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
)

// Total is the joint cost of a pool's jobs to a device that is in all of them.
type Total struct {
	Pool      string        `json:"pool"`
	Jobs      int           `json:"jobs"`
	Rounds    int           `json:"rounds"` // charged, or under way
	Guarantee *dp.Guarantee `json:"guarantee,omitempty"`
	// Why there is no guarantee; empty if there is one, or nothing was spent.
	Why string `json:"why,omitempty"`
}

// merged writes rounds that cost the same as one event of many: an accountant's work grows
// with the kinds of rounds, not with their number.
func merged(events []dp.Event) []dp.Event {
	at := map[dp.Event]int{}
	var out []dp.Event
	for _, e := range events {
		if e.Banded != (dp.Banded{}) { // each of whose rows costs another amount
			out = append(out, e)
			continue
		}
		count := e.Count
		e.Round, e.Certificate, e.Count = 0, [32]byte{}, 0
		if e.Kind != dp.KindUnnoised {
			e.Kind = dp.KindRelease // all cost the same
		}
		i, known := at[e]
		if !known {
			i = len(out)
			at[e] = i
			out = append(out, e)
		}
		out[i].Count += count
	}
	return out
}

// uncommon says why events have no guarantee in common, "" if they have one.
func uncommon(events []dp.Event) string {
	for _, e := range events {
		switch {
		case e.Kind == dp.KindUnnoised:
			return "a job of it adds no noise: nothing composed with it is private"
		case e.ProviderRate > 0 != (events[0].ProviderRate > 0):
			return "some of its jobs protect devices and others providers, which have no guarantee in common"
		}
	}
	return ""
}

// compose is what events come to at a delta of which floors have a part.
func compose(events []dp.Event, delta, floor float64) (g dp.Guarantee, why string, err error) {
	if why := uncommon(events); why != "" {
		return g, why, nil
	}
	if !(floor < delta) {
		return g, fmt.Sprintf("the floors of its jobs have %.3g of delta, which is %.3g", floor, delta), nil
	}
	// Renyi's composition takes rounds of different jobs as they come, in moments.
	b := accounting.Budget{Epsilon: math.MaxFloat64, Delta: delta, Floor: floor, Accountant: dp.RDP}
	// A coalition sees at least what the public sees.
	g, err = b.Guarantee(accounting.CoalitionEpsilon, merged(events))
	if errors.Is(err, dp.ErrNoBound) {
		return g, "no epsilon bounds what its jobs spent", nil
	}
	return g, "", err
}

// afford says why the fleet's budget does not hold one more round, "" if it does.
func afford(s *store.Spent, job, pool string, next coordinator.Price) (why string, err error) {
	if s.Epsilon == 0 {
		return "", nil // each job has its own alone
	}
	events, floor := s.Events(pool)
	had := 0.0
	if b := s.By[job]; b != nil {
		had = b.Floor
	}
	g, why, err := compose(append(events, next.Event), s.Delta, floor+max(0, next.Floor-had))
	if err != nil {
		return "", fmt.Errorf("jobs: the fleet's budget: %w", err)
	}
	if why != "" {
		return "paused: the fleet has a budget, and of the pool " + pool + " " + why, nil
	}
	if g.Epsilon > s.Epsilon {
		return fmt.Sprintf("paused: one more round would bring what the jobs of the pool %s spent together to epsilon %.6g at delta %.3g, "+
			"the fleet's budget is %.6g", pool, g.Epsilon, s.Delta, s.Epsilon), nil
	}
	return "", nil
}

// statedDelta is what totals are stated at where the fleet has no budget.
const statedDelta = 1e-6

// Totals accounts each pool that spent anything, in the order of their names.
func Totals(s *store.Spent) ([]Total, error) {
	delta := s.Delta
	if s.Epsilon == 0 {
		delta = statedDelta
	}
	jobs := map[string]int{}
	for _, b := range s.By {
		jobs[b.Pool]++
	}
	out := []Total{}
	for _, name := range sortedKeys(jobs) {
		events, floor := s.Events(name)
		t := Total{Pool: name, Jobs: jobs[name], Rounds: len(events)}
		if len(events) > 0 {
			g, why, err := compose(events, delta, floor)
			if err != nil {
				return nil, fmt.Errorf("jobs: pool %s: %w", name, err)
			}
			if t.Why = why; why == "" {
				t.Guarantee = &g
			}
		}
		out = append(out, t)
	}
	return out, nil
}

package coordinator

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
)

// accounts says what a job has spent and whether it may go on, without composing
// all rounds anew before each.
//
// Rounds differ by the rank they draw, in the last digits of what they cost. All
// are accounted as the costliest that the job can draw, of which core.NewTerms has
// verified that as many as the job has rounds keep its budget: whether one more may
// be started is then a count. What is shown beside the ledger is computed for some
// numbers of rounds, in advance and beside the engine, and for one in between as
// for the next of them: an upper bound. The ledger holds what each round was, and
// `starling privacy ledger` composes that exactly.
type accounts struct {
	t        *core.Terms
	costly   dp.Event // no round costs more
	mu       sync.Mutex
	points   map[int]*point // by number of rounds
	work     sync.WaitGroup
	stranger bool // the ledger has events of another kind: all is composed exactly
}

// point is the guarantee after a number of rounds.
type point struct {
	done chan struct{}
	dp.Guarantees
	err error
}

// points on the curve of a job that has more rounds: each is then one hundredth of
// the final epsilon from the next, about.
const curvePoints = 100

func newAccounts(t *core.Terms, spent []dp.Event) (*accounts, error) {
	costly, err := t.Costliest()
	if err != nil {
		return nil, err
	}
	a := &accounts{t: t, costly: costly, points: map[int]*point{}}
	a.stranger = slices.ContainsFunc(spent, func(e dp.Event) bool { return !a.covers(e) })
	return a, nil
}

// covers reports whether an event costs at most what the costliest does.
func (a *accounts) covers(e dp.Event) bool {
	if e.B2 < a.costly.B2 || e.Dim > a.costly.Dim {
		return false
	}
	same := a.costly
	same.Round, same.Kind, same.B2, same.Sigma2, same.Dim, same.Certificate = e.Round, e.Kind, e.B2, e.Sigma2, e.Dim, e.Certificate
	return same == e
}

// milestone returns the number of rounds, at least n, whose guarantee is shown for n.
func (a *accounts) milestone(n int) int {
	total := a.t.Job.Rounds
	if total <= curvePoints || n <= curvePoints/4 || n >= total {
		return n // the first rounds, where the curve is steep, have one each
	}
	// Evenly spaced in the square root, along which epsilon is near a line.
	step := math.Ceil(curvePoints*math.Sqrt(float64(n)/float64(total))) / curvePoints
	return min(max(n, int(math.Ceil(step*step*float64(total)))), total)
}

// ahead starts computing the guarantee of n rounds, unless it is known already.
func (a *accounts) ahead(n int) *point {
	n = a.milestone(n)
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.points[n]
	if p == nil {
		p = &point{done: make(chan struct{})}
		a.points[n] = p
		a.work.Go(func() {
			defer close(p.done)
			all := a.costly
			all.Count = uint32(n)
			p.Guarantees, p.err = a.t.Guarantees([]dp.Event{all})
		})
	}
	return p
}

// at returns the guarantee of n rounds, and waits if it is being computed.
func (a *accounts) at(n int) (dp.Guarantees, error) {
	p := a.ahead(n)
	<-p.done
	return p.Guarantees, p.err
}

// allow reports whether a round may follow those spent.
func (a *accounts) allow(spent []dp.Event, next dp.Event) error {
	n := len(spent) + 1
	if limit := a.t.Draws(); a.t.Sampled() && n > limit {
		return fmt.Errorf("coordinator: round %d would be draw %d, the floors' part of delta is made for %d: %w", next.Round, n, limit, ErrBudget)
	}
	if a.stranger || !a.covers(next) {
		a.stranger = true
		_, err := a.t.Budget.Allow(spent, next, a.t.Job.Simulated())
		return err
	}
	if n <= a.t.Job.Rounds {
		a.ahead(n)
		if next := a.milestone(n) + 1; next <= a.t.Job.Rounds {
			a.ahead(next)
		}
		return nil
	}
	g, err := a.at(n)
	if err != nil {
		return err
	}
	bound := g.Delivered
	if a.t.Job.Simulated() {
		bound = g.Simulated
	}
	if b := a.t.Budget; bound.Epsilon > b.Epsilon {
		return fmt.Errorf("coordinator: round %d would bring epsilon to %.6g at delta %.3g (%s accountant), budget %.6g: %w",
			next.Round, bound.Epsilon, bound.Delta, bound.Accountant, b.Epsilon, ErrBudget)
	}
	return nil
}

// mayStartAnother reports whether any round of the job may follow those spent, whatever it draws: of
// a ledger of the job's own events that is a count, of another one the cheapest is asked.
func (a *accounts) mayStartAnother(spent []dp.Event, id uint64) error {
	next := a.costly
	if a.stranger {
		var err error
		if next, err = a.t.Cheapest(); err != nil {
			return err
		}
	}
	next.Round = id
	return a.allow(spent, next)
}

// of is what the spent events come to.
func (a *accounts) of(spent []dp.Event) (dp.Guarantees, error) {
	if a.stranger || len(spent) == 0 {
		return a.t.Guarantees(spent)
	}
	return a.at(len(spent))
}

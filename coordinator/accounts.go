package coordinator

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
)

// accounts says what a job has spent and whether it may go on, without composing
// all rounds anew before each.
//
// Rounds differ by the rank they draw, in the last digits of what they cost. All
// are accounted as the costliest that the job can draw, of which newTerms has
// verified that as many as the job has rounds keep its budget: whether one more may
// be started is then a count. What is shown beside the ledger is computed for some
// numbers of rounds, in advance and beside the engine, and for one in between as
// for the next of them: an upper bound. The ledger holds what each round was, and
// `starling privacy ledger` composes that exactly.
type accounts struct {
	t        *terms
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

func newAccounts(t *terms, spent []dp.Event) (*accounts, error) {
	costly, err := t.costliest()
	if err != nil {
		return nil, err
	}
	a := &accounts{t: t, costly: costly, points: map[int]*point{}}
	a.stranger = slices.ContainsFunc(spent, func(e dp.Event) bool { return !a.covers(e) })
	return a, nil
}

// costliest is an event that costs at least what any round of the job does:
// epsilon grows as the squared sensitivity shrinks, by what discreteness costs,
// and with the coordinates.
func (t *terms) costliest() (dp.Event, error) {
	return t.extreme(func(b2, other int64, size, others int) (int64, int) { return min(b2, other), max(size, others) })
}

// cheapest is an event that costs at most what any round of the job does.
func (t *terms) cheapest() (dp.Event, error) {
	return t.extreme(func(b2, other int64, size, others int) (int64, int) { return max(b2, other), min(size, others) })
}

// extreme is an event of a squared sensitivity and a size that are chosen of those at the
// least and the largest rank, between which the others lie.
func (t *terms) extreme(choose func(b2, other int64, size, others int) (int64, int)) (dp.Event, error) {
	ranks := t.ranks()
	var b2 int64
	size := 0
	for i, rank := range []int{ranks[0], ranks[len(ranks)-1]} {
		v, err := t.vector(rank, t.job.Privacy.ClipNorm, [32]byte{})
		if err != nil {
			return dp.Event{}, err
		}
		if i == 0 {
			b2, size = v.B2(), v.Size()
		}
		b2, size = choose(b2, v.B2(), size, v.Size())
	}
	cert := dp.Certificate{Method: dp.MethodPoisson, Rate: t.job.Cohort.SamplingRate, Population: t.job.Cohort.Population}
	return t.release(1, b2, cert).Event(size)
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
	total := a.t.job.Rounds
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
			p.Guarantees, p.err = a.t.guarantees([]dp.Event{all})
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
	if limit := a.t.draws(); a.t.sampled() && n > limit {
		return fmt.Errorf("coordinator: round %d would be draw %d, the floors' part of delta is made for %d: %w", next.Round, n, limit, ErrBudget)
	}
	if a.stranger || !a.covers(next) {
		a.stranger = true
		_, err := a.t.budget.Allow(spent, next, a.t.job.Simulated())
		return err
	}
	if n <= a.t.job.Rounds {
		a.ahead(n)
		if next := a.milestone(n) + 1; next <= a.t.job.Rounds {
			a.ahead(next)
		}
		return nil
	}
	g, err := a.at(n)
	if err != nil {
		return err
	}
	bound := g.Delivered
	if a.t.job.Simulated() {
		bound = g.Simulated
	}
	if b := a.t.budget; bound.Epsilon > b.Epsilon {
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
		if next, err = a.t.cheapest(); err != nil {
			return err
		}
	}
	next.Round = id
	return a.allow(spent, next)
}

// of is what the spent events come to.
func (a *accounts) of(spent []dp.Event) (dp.Guarantees, error) {
	if a.stranger || len(spent) == 0 {
		return a.t.guarantees(spent)
	}
	return a.at(len(spent))
}

// guarantees composes events exactly.
func (t *terms) guarantees(events []dp.Event) (dp.Guarantees, error) {
	var g dp.Guarantees
	var errs []error
	compose := func(f func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error)) *dp.Guarantee {
		v, err := t.budget.Guarantee(f, events)
		if err != nil {
			errs = append(errs, fmt.Errorf("coordinator: %w", err))
		}
		return &v
	}
	g.Delivered = compose(accounting.Epsilon)
	if t.job.VisibleDiffers() {
		g.Visible = compose(accounting.VisibleEpsilon)
	}
	if t.job.Simulated() {
		g.Simulated = compose(accounting.SimulatedEpsilon)
	}
	if t.own.Multiplier > 0 {
		g.Untrusted = compose(accounting.UntrustedEpsilon)
	}
	return g, errors.Join(errs...)
}

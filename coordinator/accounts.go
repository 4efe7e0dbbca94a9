package coordinator

import (
	"fmt"
	"math"
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
	points   map[tally]*point
	work     sync.WaitGroup
	stranger bool // the ledger has events of another kind: all is composed exactly
}

// tally counts rounds. Where noise cancels between rounds the n-th release costs what the n-th row
// does, and a round that released nothing another amount; elsewhere all cost the same, and charged
// is 0.
type tally struct{ rounds, charged int }

// events are so many rounds as the costliest.
func (n tally) events(costly dp.Event) (all []dp.Event) {
	if costly.Count = uint32(n.rounds); n.rounds > 0 {
		all = append(all, costly)
	}
	if costly.Count, costly.Kind = uint32(n.charged), dp.KindCharged; n.charged > 0 {
		all = append(all, costly)
	}
	return all
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
	a := &accounts{t: t, costly: costly, points: map[tally]*point{}}
	var before tally
	for _, e := range spent {
		a.stranger = a.stranger || !a.covers(before, e)
		a.add(&before, e)
	}
	return a, nil
}

// count is how many rounds were spent.
func (a *accounts) count(spent []dp.Event) (n tally) {
	for i := range spent {
		a.add(&n, spent[i])
	}
	return n
}

// add counts one more.
func (a *accounts) add(n *tally, e dp.Event) {
	if a.banded() && e.Kind == dp.KindCharged {
		n.charged++
	} else {
		n.rounds++
	}
}

func (a *accounts) banded() bool { return a.costly.Banded != (dp.Banded{}) }

// next is the costliest that may follow those spent.
func (a *accounts) next(spent []dp.Event) dp.Event { return a.following(a.costly, a.count(spent)) }

// following is an event as the next after so many.
func (a *accounts) following(e dp.Event, before tally) dp.Event {
	if a.banded() {
		e.Banded.Row = uint64(before.rounds) + 1
	}
	return e
}

// covers reports whether an event after so many costs at most what the costliest does.
func (a *accounts) covers(before tally, e dp.Event) bool {
	if e.B2 < a.costly.B2 || e.Dim > a.costly.Dim {
		return false
	}
	same := a.following(a.costly, before)
	same.Round, same.Kind, same.B2, same.Sigma2, same.Dim, same.Certificate = e.Round, e.Kind, e.B2, e.Sigma2, e.Dim, e.Certificate
	return same == e
}

// milestone returns the tally, of no fewer, whose guarantee is shown for n.
func (a *accounts) milestone(n tally) tally {
	if n.charged > 0 { // of which there are few, and each may be the last
		return n
	}
	return tally{rounds: a.curve(n.rounds)}
}

func (a *accounts) curve(n int) int {
	total := a.t.Job.Rounds
	if total <= curvePoints || n <= curvePoints/4 || n >= total {
		return n // the first rounds, where the curve is steep, have one each
	}
	// Evenly spaced in the square root, along which epsilon is near a line.
	step := math.Ceil(curvePoints*math.Sqrt(float64(n)/float64(total))) / curvePoints
	return min(max(n, int(math.Ceil(step*step*float64(total)))), total)
}

// ahead starts computing the guarantee of n rounds, unless it is known already.
func (a *accounts) ahead(n tally) *point {
	n = a.milestone(n)
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.points[n]
	if p == nil {
		p = &point{done: make(chan struct{})}
		a.points[n] = p
		a.work.Go(func() {
			defer close(p.done)
			p.Guarantees, p.err = a.t.Guarantees(n.events(a.costly))
		})
	}
	return p
}

// at returns the guarantee of n rounds, and waits if it is being computed.
func (a *accounts) at(n tally) (dp.Guarantees, error) {
	p := a.ahead(n)
	<-p.done
	return p.Guarantees, p.err
}

// allow reports whether a round may follow those spent, however it ends: with banded noise one that is charged and releases
// nothing costs more than a release.
func (a *accounts) allow(spent []dp.Event, next dp.Event) error {
	if n, limit := len(spent)+1, a.t.Draws(); a.t.Sampled() && n > limit {
		return fmt.Errorf("coordinator: round %d would be draw %d, the floors' part of delta is made for %d: %w", next.Round, n, limit, ErrBudget)
	}
	before := a.count(spent)
	if a.stranger || !a.covers(before, next) {
		a.stranger = true
		_, err := a.t.Budget.Allow(spent, dp.AtMost(next), a.t.Job.Simulated())
		return err
	}
	released, charged := before, before
	released.rounds++
	charged.charged++
	if released.rounds <= a.t.Job.Rounds && before.charged == 0 { // the noise was chosen for that: see core.Terms
		a.ahead(released)
		if next := a.curve(released.rounds) + 1; next <= a.t.Job.Rounds {
			a.ahead(tally{rounds: next})
		}
		return nil
	}
	if a.banded() {
		return a.fits(charged, next) // which costs no less
	}
	return a.fits(released, next)
}

// fits reports whether so many rounds, of which next is the last, stay within the budget.
func (a *accounts) fits(n tally, next dp.Event) error {
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
	next = a.following(next, a.count(spent))
	next.Round = id
	return a.allow(spent, next)
}

// of is what the spent events come to.
func (a *accounts) of(spent []dp.Event) (dp.Guarantees, error) {
	if a.stranger || len(spent) == 0 {
		return a.t.Guarantees(spent)
	}
	return a.at(a.count(spent))
}

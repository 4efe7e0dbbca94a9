package guarantee

import (
	"fmt"
	"io"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/app/usage"
)

// Search has two guarantees: of a search over settings that releases its best run, and of one run.
type Search struct {
	One       dp.Guarantee      `json:"one_run"`
	Whole     dp.Guarantee      `json:"search"`
	Runs      accounting.Search `json:"runs"`
	Quantiles []RunsBelow       `json:"quantiles"` // of the number of runs
}

// RunsBelow says that the number of runs is at most that with a probability.
type RunsBelow struct {
	Probability float64 `json:"probability"`
	Runs        int     `json:"runs"`
}

// Search returns the cost of a search by so many runs of the plan. Its errors are usage errors where an accountant
// refuses the plan.
func (p *Plan) Search(runs accounting.Search, acct dp.Accountant) (s Search, err error) {
	s.Runs = runs
	events := []dp.Event{p.Event(p.Rounds)}
	if s.One, err = accounting.Epsilon(events, p.Delta, acct); err != nil {
		return s, usage.Wrap(err)
	}
	if s.Whole, err = runs.Guarantee(accounting.Budget{Delta: p.Delta}, events, false); err != nil {
		return s, err
	}
	for _, q := range []float64{0.05, 0.5, 0.95, 0.999} {
		s.Quantiles = append(s.Quantiles, RunsBelow{q, runs.Quantile(q)})
	}
	return s, nil
}

// Print writes both.
func (r Search) Print(w io.Writer) error {
	fmt.Fprintf(w, "one run           epsilon %.6g at delta %.3g, %s accountant (rdp alone: %.6g)\n", r.One.Epsilon, r.One.Delta, r.One.Accountant, r.One.RDPEpsilon)
	fmt.Fprintf(w, "the search        epsilon %.6g at delta %.3g, %s accountant at order %.5g\n", r.Whole.Epsilon, r.Whole.Delta, r.Whole.Accountant, r.Whole.RDPOrder)
	fmt.Fprintf(w, "adjacency         %s\nsampling          %s\nrounds            %d in each run\n", r.Whole.Adjacency, r.Whole.Sampling, r.Whole.Rounds)
	fmt.Fprintf(w, "runs              %s, %.6g on average\n", r.Runs, r.Runs.Mean)
	for _, q := range r.Quantiles {
		fmt.Fprintf(w, "  at most %-8d with probability %.4g\n", q.Runs, q.Probability)
	}
	_, err := fmt.Fprintf(w, "\nProtected: the presence of %s, from anyone who sees the one model that is\nreleased. The other runs, how many there were and what they scored must stay secret.\n", protectedUnit(r.Whole.Adjacency))
	return err
}

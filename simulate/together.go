package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model/trainer"
)

// together lets the clients at places from up to to contribute side by side, so that
// the steps of all of them are taken at once. Which places are together must follow
// from the cohort alone: the bits of a step can depend on it.
func (a *Assignment) together(ctx context.Context, c trainer.Cohort, from, to int, client func(at int) (Client, error), t *Tally) error {
	type part struct {
		symbols []int32
		norms   []float64
		err     error
	}
	parts := make([]part, to-from)
	g := &gather{cohort: c, training: len(parts)}
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			defer g.leave()
			p := &parts[i]
			var one Client
			if one, p.err = client(from + i); p.err == nil {
				p.symbols, p.norms, p.err = a.Contribute(ctx, seat{g, i}, one)
			}
		})
	}
	wg.Wait()
	for i, p := range parts {
		if p.err != nil {
			return p.err
		}
		t.Add(from+i, p.symbols, p.norms)
	}
	return nil
}

// gather waits until every client that is not done yet wants to train, and lets them
// train together: the first trainings of all, then the second of those that have one.
type gather struct {
	cohort trainer.Cohort

	mu       sync.Mutex
	training int     // clients that are not done; by mu
	waiting  []*call // by mu
}

// call is one client's wish to train.
type call struct {
	seat int
	ctx  context.Context
	task edge.Task
	out  trainer.Trained
	done chan struct{} // closed once out is there
}

// seat is the trainer that a client of a gather has.
type seat struct {
	*gather
	at int
}

var _ edge.Trainer = seat{}

func (s seat) Train(ctx context.Context, t edge.Task) ([]float32, error) {
	c := &call{seat: s.at, ctx: ctx, task: t, done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, c)
	s.begin()
	<-c.done
	return c.out.Delta, c.out.Err
}

// Close does nothing: another owns the cohort.
func (s seat) Close() error { return nil }

// leave says that a client is done.
func (g *gather) leave() {
	g.mu.Lock()
	g.training--
	g.begin()
}

// begin lets all train if nobody is missing. It is called with mu held, and releases it.
func (g *gather) begin() {
	var calls []*call
	if len(g.waiting) == g.training {
		calls, g.waiting = g.waiting, nil
	}
	g.mu.Unlock()
	if len(calls) == 0 {
		return
	}
	slices.SortFunc(calls, func(a, b *call) int { return cmp.Compare(a.seat, b.seat) })
	tasks := make([]edge.Task, len(calls))
	for i, c := range calls {
		tasks[i] = c.task
	}
	all := g.cohort.TrainAll(calls[0].ctx, tasks)
	for i, c := range calls {
		if len(all) == len(calls) {
			c.out = all[i]
		} else { // whose is whose cannot be told
			c.out.Err = fmt.Errorf("simulate: %d clients were trained together, the trainer answered for %d", len(calls), len(all))
		}
		close(c.done)
	}
}

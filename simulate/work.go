package simulate

import (
	"context"
	"fmt"
	"sync"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
)

// Plan holds what a round asks of every client, as plain values.
type Plan struct {
	Round        uint64        `cbor:"1,keyasint"`
	Rank         int           `cbor:"2,keyasint"`
	Uplink       string        `cbor:"3,keyasint"` // the lattice's scheme
	Dim          int           `cbor:"4,keyasint"` // values trained
	ClipNorm     float64       `cbor:"5,keyasint"`
	Rotation     [32]byte      `cbor:"6,keyasint"`
	Count        dp.CountCode  `cbor:"7,keyasint"`
	Figures      dp.FigureCode `cbor:"18,keyasint"`
	Training     training.Spec `cbor:"8,keyasint"`
	Sequence     int           `cbor:"10,keyasint"`
	Method       model.Method  `cbor:"13,keyasint"`
	Classes      int           `cbor:"15,keyasint"`
	Providers    int           `cbor:"16,keyasint"` // most of a client, 0: the client is the unit
	ProviderRate float64       `cbor:"17,keyasint"`
	Groups       int           `cbor:"19,keyasint"` // of each unit's examples; 0 and 1: none
}

// Assignment is a plan with what it needs: the base, the compiled step, and the
// values that everybody starts from. It is safe for concurrent use.
type Assignment struct {
	Plan
	Base       *model.Base
	BaseSHA256 [32]byte
	Program    []byte
	Start      []float32

	layout *model.Layout
	task   task.Task
	vector contract.Vector // with a client's own noise where its dual variable is to know it
	failed func(error)     // is told why a unit's training came to nothing; nil: nobody is
}

// NewAssignment derives the rest where a plan came from elsewhere. It refuses a
// plan that does not fit its base.
func NewAssignment(p Plan, base *model.Base, sum [32]byte, program []byte, start []float32) (*Assignment, error) {
	a := &Assignment{Plan: p, Base: base, BaseSHA256: sum, Program: program, Start: start}
	var err error
	if a.layout, err = model.NewLayout(base.Config, p.Method, p.Classes); err != nil {
		return nil, fmt.Errorf("%w: plan: %w", ErrConfig, err)
	}
	if p.Rank < 0 || p.Rank > p.Method.RMax || a.layout.Size(p.Rank) != p.Dim || len(start) != p.Dim {
		return nil, fmt.Errorf("%w: plan: %d values and a start of %d at rank %d of %d", ErrConfig, p.Dim, len(start), p.Rank, p.Method.RMax)
	}
	if err := p.Training.Validate(); err != nil {
		return nil, fmt.Errorf("%w: plan: %w", ErrConfig, err)
	}
	if err := p.Figures.Check(); err != nil {
		return nil, fmt.Errorf("%w: plan: %w", ErrConfig, err)
	}
	if p.Sequence < 1 || p.Sequence > base.Config.MaxTokens() || p.Count.Coordinates < 0 || p.Count.Coordinates > dp.MaxCountCoordinates {
		return nil, fmt.Errorf("%w: plan: examples of %d tokens, count of %d coordinates", ErrConfig, p.Sequence, p.Count.Coordinates)
	}
	if p.Groups < 0 || p.Groups > contract.MaxParts {
		return nil, fmt.Errorf("%w: plan: %d groups of examples, must be in 0..%d", ErrConfig, p.Groups, contract.MaxParts)
	}
	a.vector.Count, a.vector.Figures, a.vector.Groups = p.Count, p.Figures, p.Groups
	if a.vector.Lattice, err = contract.Lattice(p.Uplink, p.Dim, p.ClipNorm, p.Groups, p.Rotation); err != nil {
		return nil, fmt.Errorf("%w: plan: %w", ErrConfig, err)
	}
	if a.task, err = task.New(base, a.layout, p.Sequence); err != nil {
		return nil, fmt.Errorf("%w: plan: %w", ErrConfig, err)
	}
	return a, nil
}

// Size is the coordinates of a contribution.
func (a *Assignment) Size() int { return a.vector.Size() }

// CheckSum refuses a sum of symbols that so many clients cannot have made: a coordinate that
// is larger than theirs together, an L2 norm beyond theirs, or a count or figures that they
// cannot have.
func (a *Assignment) CheckSum(sum []int64, clients int) error {
	if err := a.vector.CheckSum(sum, clients*max(1, a.Providers), clients); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	return nil
}

// Client is a member of a cohort.
type Client struct {
	Number int
	Seed   []byte // of its coins, orders and rounding
	Set    *dataset.Set
	Dual   *edge.Dual // nil: it keeps nothing

	features *trainer.Features // of all clients together; nil: it keeps its own for the round
}

// Contribute is one client's part: its symbols (nil for one without examples), and
// the norms of its units before clipping. A unit whose training comes to nothing has no norm, and
// adds zeros, as it does on a device.
func (a *Assignment) Contribute(ctx context.Context, trainer edge.Trainer, c Client) (symbols []int32, norms []float64, err error) {
	if len(c.Set.Examples) == 0 {
		return nil, nil, nil
	}
	data, err := edge.NewGroupedData(c.Set, a.task, a.Providers, a.ProviderRate, a.Groups, c.Seed)
	if err == nil && a.Training.HeldOut > 0 {
		err = data.HoldOut(a.Training.HeldOut)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("simulate: client %d: %w", c.Number, err)
	}
	dual := c.Dual.Round()
	symbols, err = edge.Contribute(ctx, trainer, data, edge.Contribution{
		Round: a.Round, Seed: c.Seed, Lattice: a.vector.Lattice, Count: a.Count, Figures: a.Figures, Labels: a.Classes, Groups: a.Groups, Dual: dual, Own: a.vector.Own,
		Task: edge.Task{
			Base:       func(context.Context) (*model.Base, error) { return a.Base, nil },
			BaseSHA256: a.BaseSHA256, Layout: a.layout, Rank: a.Rank, Start: a.Start, Program: a.Program,
			Spec: a.Training, Sequence: a.Sequence, Features: c.features,
		},
		Norm:   func(n float64) { norms = append(norms, n) },
		Failed: a.failed,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("simulate: client %d: %w", c.Number, err)
	}
	dual.Keep()
	if a.vector.Own != (dp.Variance{}) { // its dual variable knows it now; the sum gets it with everybody's
		noise := make([]int64, len(symbols))
		if err := edge.OwnNoise(c.Seed, a.Round).AddNoise(noise, a.vector.Own); err != nil {
			return nil, nil, err
		}
		for i, x := range noise {
			symbols[i] -= int32(x)
		}
	}
	return symbols, norms, nil
}

// Tally adds up clients' contributions. Integer sums and counts do not depend on the order; norms are kept by
// place in the cohort, for the same reason.
type Tally struct {
	Sum   []int64
	Empty int // clients without an example
	Norms [][]float64
}

// NewTally returns an empty tally for a cohort of n.
func (a *Assignment) NewTally(n int) *Tally {
	return &Tally{Sum: make([]int64, a.Size()), Norms: make([][]float64, n)}
}

// Add takes a client's part in; at is its place.
func (t *Tally) Add(at int, symbols []int32, norms []float64) {
	if symbols == nil {
		t.Empty++
	}
	for i, v := range symbols {
		t.Sum[i] += int64(v)
	}
	t.Norms[at] = norms
}

// Merge takes in what was tallied elsewhere of other places.
func (t *Tally) Merge(o *Tally) {
	t.Empty += o.Empty
	for i, v := range o.Sum {
		t.Sum[i] += v
	}
	for at, norms := range o.Norms {
		if norms != nil {
			t.Norms[at] = norms
		}
	}
}

// alone lets the client at a place contribute.
func (a *Assignment) alone(ctx context.Context, with edge.Trainer, at int, client func(at int) (Client, error), features *trainer.Features, t *Tally) error {
	c, err := client(at)
	if err != nil {
		return err
	}
	c.features = features
	symbols, norms, err := a.Contribute(ctx, with, c)
	if err != nil {
		return err
	}
	t.Add(at, symbols, norms)
	return nil
}

// Collect lets the n clients of a cohort contribute, in any order and anywhere,
// and returns what they come to. client puts one together; it is safe for
// concurrent use.
type Collect func(ctx context.Context, a *Assignment, n int, client func(at int) (Client, error)) (*Tally, error)

// mostFeatures is what all clients' features may take in memory, in bytes.
const mostFeatures = 1 << 29

// InProcess collects in this process, workers side by side. A trainer that trains clients
// together (trainer.Cohort) is given them by their places, so many at a time.
func InProcess(with edge.Trainer, workers int) Collect {
	size := 1
	cohort, _ := with.(trainer.Cohort)
	if cohort != nil {
		size = max(1, cohort.Together())
	}
	features := trainer.NewFeatures(mostFeatures)
	return func(ctx context.Context, a *Assignment, n int, client func(at int) (Client, error)) (*Tally, error) {
		total := a.NewTally(n)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		places := make(chan int)
		var mu sync.Mutex // of total
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				mine := a.NewTally(n)
				for at := range places {
					var err error
					if size > 1 {
						err = a.together(ctx, cohort, at, min(n, at+size), client, mine)
					} else {
						err = a.alone(ctx, with, at, client, features, mine)
					}
					if err != nil {
						cancel(err)
						break
					}
				}
				mu.Lock()
				defer mu.Unlock()
				total.Merge(mine)
			})
		}
	feed:
		for at := 0; at < n; at += size {
			select {
			case places <- at:
			case <-ctx.Done():
				break feed
			}
		}
		close(places)
		wg.Wait()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return total, nil
	}
}

package simulate

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model"
)

// Round is what one round came to.
type Round struct {
	Version int    `json:"round"`   // committed rounds, this one included
	Attempt uint64 `json:"attempt"` // the number that its randomness is keyed by
	Rank    int    `json:"rank"`
	Cohort  int    `json:"cohort"` // drawn
	Empty   int    `json:"empty"`  // of them without an example: they count as zero contributions

	NoiseOnly bool    `json:"noise_only,omitempty"` // the cohort was below its floor
	ClipNorm  float64 `json:"clip_norm"`
	// SignalNorm is the L2 norm of the exact mean update, NoiseNorm that of what
	// was added to it; their quotient decides a privacy experiment.
	SignalNorm float64 `json:"signal_norm"`
	NoiseNorm  float64 `json:"noise_norm"`
	Clipped    float64 `json:"clipped"`   // share of the units whose norm was above the clip norm
	MeanNorm   float64 `json:"mean_norm"` // mean L2 norm of the units before clipping

	// Bytes of one device: its masked vector, and the adapter's slice.
	BytesUp   int `json:"bytes_up"`
	BytesDown int `json:"bytes_down"`

	Accuracy []RankAccuracy `json:"accuracy,omitempty"` // on validation data, where it was measured
}

// RankAccuracy is the accuracy of the adapter cut to a rank.
type RankAccuracy = coordinator.RankAccuracy

// start is what everybody in a round starts from.
type start struct {
	draw    *coordinator.Draw
	program []byte
	values  []float32
	bytes   int // of the message that says so
}

// prepare makes what a drawn round's clients are given.
func (r *Run) prepare(d *coordinator.Draw) (start, error) {
	s := start{draw: d}
	message, values, err := r.core.Slice(d.Rank())
	if err != nil {
		return s, err
	}
	s.values, s.bytes = values, len(message)
	if s.program = r.programs[d.Rank()]; s.program == nil {
		if s.program, err = r.cfg.Compile(r.core.ProgramSpec(d.Rank(), coordinator.Hosts[0])); err != nil {
			return s, err
		}
		r.programs[d.Rank()] = s.program
	}
	return s, nil
}

// tally is what some clients' contributions come to. Sums of integers and counts
// do not depend on the order; the norms are kept by member, for the same reason.
type tally struct {
	sum   []int64
	empty int
	norms [][]float64 // by place in the cohort
}

// collect lets the cohort contribute, the workers side by side.
func (r *Run) collect(ctx context.Context, s start) (*tally, error) {
	cohort := s.draw.Cohort()
	total := &tally{sum: make([]int64, s.draw.Size()), norms: make([][]float64, len(cohort))}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range r.cfg.Workers {
		wg.Go(func() {
			mine := make([]int64, s.draw.Size())
			empty := 0
			for at := range places {
				symbols, norms, err := r.contribute(ctx, s, cohort[at])
				if err != nil {
					cancel(fmt.Errorf("simulate: client %d: %w", cohort[at], err))
					break
				}
				if symbols == nil {
					empty++
				}
				for i, v := range symbols {
					mine[i] += int64(v)
				}
				total.norms[at] = norms // nobody else writes there
			}
			mu.Lock()
			defer mu.Unlock()
			total.empty += empty
			for i, v := range mine {
				total.sum[i] += v
			}
		})
	}
feed:
	for at := range cohort {
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

// contribute is one client's part; nil symbols stand for one without examples.
func (r *Run) contribute(ctx context.Context, s start, member int) (symbols []int32, norms []float64, err error) {
	client := r.order(member)
	set, err := r.cfg.Population.Client(client)
	if err != nil || len(set.Examples) == 0 {
		return nil, nil, err
	}
	if set, err = set.Relabel(r.job.Labels); err != nil {
		return nil, nil, err
	}
	data, err := edge.NewData(set, r.tokenizer, r.job.Adapter.Sequence, r.job.Providers.Max, r.job.Providers.SamplingRate)
	if err != nil {
		return nil, nil, err
	}
	base, sum := r.core.Base()
	seed, _ := edge.Reproducible(r.cfg.Seed, client)
	symbols, err = edge.Contribute(ctx, r.cfg.Trainer, data, edge.Contribution{
		Round: s.draw.ID(), Seed: seed, Lattice: s.draw.Lattice(), Count: s.draw.Count(), Steps: r.job.Training.Steps,
		Task: edge.Task{
			Base:       func(context.Context) (*model.Base, error) { return base, nil },
			BaseSHA256: sum, Layout: r.core.Layout(), Rank: s.draw.Rank(), Start: s.values, Program: s.program,
			Optimizer: r.job.Training.Optimizer, Rate: float32(r.job.Training.LearningRate),
			Batch: r.job.Training.Batch, Sequence: r.job.Adapter.Sequence,
		},
		Norm: func(n float64) { norms = append(norms, n) },
	})
	return symbols, norms, err
}

// release adds the noise, takes the optimizer's step and says what it came to.
func (r *Run) release(ctx context.Context, s start, t *tally) (Round, error) {
	d := s.draw
	lattice := d.Lattice()
	out := Round{
		Attempt: d.ID(), Rank: d.Rank(), Cohort: len(d.Cohort()), Empty: t.empty, ClipNorm: lattice.Clip(),
		NoiseOnly: len(d.Cohort()) < r.job.Cohort.Floor,
		BytesUp:   (d.Size()*r.core.UplinkBits() + 7) / 8, BytesDown: s.bytes,
	}
	if out.NoiseOnly {
		clear(t.sum)
	}
	units, above := 0, 0
	for _, norms := range t.norms {
		for _, n := range norms {
			units++
			out.MeanNorm += n
			if n > lattice.Clip() {
				above++
			}
		}
	}
	if units > 0 {
		out.MeanNorm /= float64(units)
		out.Clipped = float64(above) / float64(units)
	}
	exact, err := lattice.DecodeMean(t.sum[:lattice.D()], r.core.Units())
	if err != nil {
		return out, err
	}
	noise, err := dp.NewPool(ctx, d.Variance(), d.Size(), r.core.Noise(d))
	if err != nil {
		return out, err
	}
	defer noise.Close()
	event, clip, err := r.core.Release(d, t.sum, out.NoiseOnly, noise)
	if err != nil {
		return out, err
	}
	noisy, err := lattice.DecodeMean(t.sum[:lattice.D()], r.core.Units())
	if err != nil {
		return out, err
	}
	for i, v := range exact {
		out.SignalNorm += float64(v) * float64(v)
		out.NoiseNorm += (float64(noisy[i]) - float64(v)) * (float64(noisy[i]) - float64(v))
	}
	out.SignalNorm, out.NoiseNorm = math.Sqrt(out.SignalNorm), math.Sqrt(out.NoiseNorm)
	r.core.Commit(clip)
	r.events = append(r.events, event)
	out.Version = int(r.core.Version())
	return out, nil
}

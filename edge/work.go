package edge

import (
	"context"
	"errors"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// work is a round's local part, done beside the exchange of keys and shares.
type work struct {
	plan *wire.Plan
	contract.Vector
	dual  *Dual      // nil: the job asks for none
	patch *wire.Blob // the slice as a difference to held; nil: fetch it whole
	held  []float32
	start chan<- contract.Slice // gets the slice once it is there; it never blocks
}

// worked is what a work hands back.
type worked struct {
	symbols []int32 // the clipped and quantized update, or the sum of the providers'
	err     error   // a *RefusalError or ctx's
}

// mostStock is the most noise that is drawn ahead, samples of 8 bytes.
const mostStock = 1 << 20

// do fetches, trains, clips and quantizes.
func (c *client) do(ctx context.Context, j *job, w work) worked {
	fail := func(cause, err error) worked {
		if ctx.Err() != nil {
			return worked{err: ctx.Err()}
		}
		return worked{err: &RefusalError{Round: w.plan.Round, Cause: cause, Err: err}}
	}
	var noise dp.Noise
	if w.Own != (dp.Variance{}) {
		// It is drawn beside everything else, so that when the update leaves tells nothing
		// of the noise in it.
		pool, err := dp.NewPool(ctx, w.Own, min(w.Size(), mostStock), random(c.cfg.Seed, forNoise, w.plan.Round))
		if err != nil {
			return fail(ErrPlan, err)
		}
		defer pool.Close()
		noise = pool
	}
	start, err := c.slice(ctx, j, w)
	if err != nil {
		return fail(ErrBlob, err)
	}
	if err := c.cfg.Policy.checkStart(j, int(w.plan.Rank), start); err != nil {
		return fail(ErrPlan, err)
	}
	w.start <- w.keep(j, start)
	program, err := c.program(ctx, j, w.plan)
	if errors.Is(err, ErrUnpromised) {
		return worked{err: err}
	} else if err != nil {
		return fail(ErrBlob, err)
	}
	at := Event{State: Training, Round: w.plan.Round, Version: w.plan.Version, Rank: int(w.plan.Rank)}
	spec := j.Announced.Spec(w.plan.Steps, w.plan.Rate)
	spec.HeldOut, spec.Scored = j.HeldOut, int(j.Scored)
	symbols, err := c.contribute(ctx, j, w.dual, Contribution{
		Round: w.plan.Round, Lattice: w.Lattice, Count: w.Count, Figures: w.Figures, Own: w.Own, Noise: noise, Labels: len(j.Labels), Work: c.cfg.Policy.Work, Units: j.terms.Job.Units(), Groups: int(j.Groups),
		MinExamples: c.cfg.Policy.Examples,
		Task: Task{
			Base:       func(ctx context.Context) (*model.Base, error) { return c.openBase(ctx, j) },
			BaseSHA256: j.Base.SHA256,
			Layout:     j.layout, Rank: int(w.plan.Rank), Start: start,
			Spec: spec, Sequence: int(j.Sequence), Program: program,
			MostMemory: c.cfg.Policy.Memory,
		},
		Seed: c.cfg.Seed, Log: c.cfg.Log,
		Failed: func(err error) {
			failed := at
			failed.Done, failed.Total, failed.Zeros = 0, 0, true
			failed.Text = Explain(err) + ": this device sends zeros in its place"
			c.events.send(failed)
		},
		Progress: func(done, total int64) {
			at.Done, at.Total = done, total
			c.events.send(at)
		},
	})
	if beyond := new(PolicyError); errors.As(err, &beyond) {
		return fail(ErrPlan, err)
	} else if errors.Is(err, ErrMisfit) {
		return fail(ErrProgram, err)
	} else if err != nil {
		return fail(ErrTraining, err)
	}
	return worked{symbols: symbols}
}

// keep is what a later round may be a difference to: the slice as received, or
// all of the adapter where its seed is known.
func (w work) keep(j *job, start []float32) contract.Slice {
	if seed, fresh := w.plan.AdapterSeed(); fresh {
		most := int(j.RankMax)
		return contract.Slice{Rank: most, Values: model.NewAdapter(j.layout, seed).Slice(most)}
	}
	return contract.Slice{Rank: int(w.plan.Rank), Values: start}
}

// slice yields the adapter's values at the plan's rank.
func (c *client) slice(ctx context.Context, j *job, w work) ([]float32, error) {
	if seed, fresh := w.plan.AdapterSeed(); fresh {
		return model.NewAdapter(j.layout, seed).Slice(int(w.plan.Rank)), nil
	}
	if w.patch != nil {
		values, err := c.unpack(ctx, w, *w.patch, w.held, "adapter difference")
		if err == nil || ctx.Err() != nil {
			return values, err
		}
		// The whole slice leads to the same values, and costs more to fetch.
		c.cfg.Log.Warn("adapter difference unusable, fetching the whole slice", "round", w.plan.Round, "err", err)
	}
	return c.unpack(ctx, w, w.plan.Slice.Blob, nil, "adapter")
}

func (c *client) unpack(ctx context.Context, w work, b wire.Blob, held []float32, what string) ([]float32, error) {
	msg, err := c.blobs.get(ctx, b, false, func(done, total int64) {
		c.events.send(Event{State: Fetching, Round: w.plan.Round, Version: w.plan.Version, Rank: int(w.plan.Rank), Done: done, Total: total, Text: what})
	})
	if err != nil {
		return nil, err
	}
	values, err := quant.UnpackUpdate(msg, held, int(w.plan.Values))
	if err != nil {
		return nil, err
	}
	if quant.Digest(values) != w.plan.Slice.Digest {
		return nil, errors.New("slice does not decode to what the plan names")
	}
	return values, nil
}

// program fetches the training step compiled for this host; any other host's
// gives the same results, slower.
func (c *client) program(ctx context.Context, j *job, p *wire.Plan) ([]byte, error) {
	if len(p.Programs) == 0 {
		return nil, nil
	}
	chosen := p.Programs[0]
	for _, g := range p.Programs {
		if g.Host == host {
			chosen = g
		}
	}
	if err := c.vet(ctx, j, int(p.Rank), chosen.Host, chosen.Blob.SHA256); err != nil {
		return nil, err
	}
	return c.blobs.get(ctx, chosen.Blob, true, func(done, total int64) {
		c.events.send(Event{State: Fetching, Round: p.Round, Version: p.Version, Rank: int(p.Rank), Done: done, Total: total, Text: "program"})
	})
}

package edge

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/quant"
)

// ErrDiverged is an update that is not finite.
var ErrDiverged = errors.New("training diverged")

// update is a round's vector as it grows: the sum of what this device's units
// contribute, each trained, clipped and quantized by itself, so that no unit
// moves it by more than the sensitivity that the noise is made for.
type update struct {
	lattice *quant.Lattice
	count   dp.CountCode // of the units within the clip norm; zero: not asked for
	sum     []int32      // lattice.D() symbols and behind them the count's
	one     []int32      // a unit's, on its way into sum

	rounding io.Reader
}

func newUpdate(l *quant.Lattice, count dp.CountCode, rounding io.Reader) *update {
	size := l.D() + count.Coordinates
	return &update{lattice: l, count: count, sum: make([]int32, size), one: make([]int32, size), rounding: rounding}
}

// add takes a unit's trained difference, which it clips in place.
func (u *update) add(delta []float32) error {
	defer clear(u.one)
	norm, err := dp.Clip(delta, u.lattice.Clip())
	if errors.Is(err, dp.ErrNotFinite) {
		return fmt.Errorf("%w: %w", ErrDiverged, err)
	} else if err != nil {
		return err
	}
	if _, err := u.lattice.EncodeInto(u.one[:u.lattice.D()], delta, u.rounding); err != nil {
		return err
	}
	u.count.Encode(u.one[u.lattice.D():], norm <= u.lattice.Clip())
	return dp.AddProvider(u.sum, u.one, u.lattice.B2()+u.count.B2())
}

// train lets each drawn unit train from the same start and adds up what they
// contribute. It reports progress over all of them.
func (c *client) train(ctx context.Context, j *job, w work, t Task) ([]int32, error) {
	units, err := j.draw(random(c.cfg.Seed, forProviders, w.plan.Round))
	if err != nil {
		return nil, err
	}
	u := newUpdate(w.lattice, w.count, random(c.cfg.Seed, forRounding, w.plan.Round))
	shuffle := random(c.cfg.Seed, forBatches, w.plan.Round)
	steps := int64(w.plan.Steps)
	at := Event{State: Training, Round: w.plan.Round, Step: w.plan.Step, Rank: int(w.plan.Rank), Total: steps * int64(len(units))}
	c.events.send(at)
	for i, one := range units {
		if t.Batches, err = one.data.batches(shuffle, int(steps), t.Batch, t.Sequence); err != nil {
			return nil, err
		}
		t.Progress = func(done, _ int) {
			at.Done = int64(i)*steps + int64(done)
			c.events.send(at)
		}
		delta, err := c.trainer.Train(ctx, t)
		if err == nil && len(delta) != int(w.plan.Values) {
			err = fmt.Errorf("trainer returned %d values, %d expected", len(delta), w.plan.Values)
		}
		if err == nil {
			err = u.add(delta)
			clear(delta)
		}
		if errors.Is(err, ErrDiverged) && j.Providers > 0 {
			// One provider's data must not decide over the others' contributions:
			// this one counts as absent.
			c.cfg.Log.Warn("a provider's training diverged", "round", w.plan.Round)
			continue
		}
		if err != nil {
			clear(u.sum)
			return nil, err
		}
	}
	return u.sum, nil
}

package edge

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/wasm"
)

// Contribution holds what a round asks of a device, by a plan or by a simulation in the same process.
type Contribution struct {
	Round       uint64
	Lattice     *quant.Lattice // of one unit's vector: dimension, clip norm, rotation
	Count       dp.CountCode   // of the units within the clip norm; zero: not asked for
	Figures     dp.FigureCode  // of what units find on examples held out (Task.Scored batches of them); zero: not asked for
	Labels      int            // of the job, which bounds a loss
	Work        float64        // most that the training of Units may take, in Task.Work's units; 0: no limit
	Units       int            // most units that the job lets a device hold; 0: one
	Groups      int            // that each unit's examples are in, and Lattice is one's of; 0 and 1: none
	MinExamples int            // distinct examples that each unit's update averages, else it is absent; 0: any number
	Task        Task           // the training; a unit's Steps, Columns, Batches, Work and Progress are filled in here

	// Own is the variance of the noise that the device adds to every coordinate of its
	// vector, whatever is in it; zero: none. Noise draws it; nil: it is drawn here, once
	// the vector is there.
	Own   dp.Variance
	Noise dp.Noise

	// Dual is the device's state of the job between rounds; nil: none. The caller calls Keep when
	// the vector was handed over.
	Dual *DualRound

	// Seed replaces the device's secret randomness; empty: crypto/rand. Only for runs without
	// protection.
	Seed []byte
	// Progress is told the steps done of all units' steps; may be nil.
	Progress func(done, total int64)
	Log      Logger // may be nil
	// Failed is called for each unit whose training failed, which counts as absent; may be nil. It
	// is for the device's owner and for simulations on public data: a device sends it to nobody.
	Failed func(error)
	// Norm is called with the L2 norm of each unit's update before it is clipped; may be nil. For
	// simulations on public data: a device sends it to nobody.
	Norm func(float64)
}

// steps is how many a unit takes, or one of its groups. A batch never holds an example twice, so
// that the last one of a pass may be short.
func (c Contribution) steps(data *local) int {
	if c.Task.Epochs == 0 {
		return c.Task.Steps
	}
	n, batch := data.trained(), max(1, c.Task.Batch)
	passes := float64(c.Task.Epochs) * float64((n+batch-1)/batch)
	return int(min(float64(c.Task.Steps), max(1, passes)))
}

// parts are those of a unit that are trained, each by itself.
func (c Contribution) parts(u unit) ([]*local, error) {
	if max(1, u.groups) != max(1, c.Groups) {
		return nil, fmt.Errorf("edge: data in %d groups, the round's vector is of %d", max(1, u.groups), max(1, c.Groups))
	}
	return u.trainable(), nil
}

// averaged is how many distinct examples a unit's update averages, where so many rows of each part
// are taken. Of a unit in groups it does not depend on who is in which.
func (u unit) averaged(part *local, order []int, rows int) int {
	if u.parts == nil {
		return part.distinct(order, rows)
	}
	return min(u.data.distinct(u.data.learnt(), u.data.n), rows*u.groups)
}

// Contribute is a device's whole part in a round but for the masks: each unit
// that is in trains from the same start, is clipped and quantized by itself, and so is each
// group of its examples where it has groups, and the sum of their vectors is returned, with the device's own noise where the round asks
// for it: Lattice.D() symbols and behind them
// Count's. It is the one path from data to symbols.
//
// A unit, or group, whose data makes training fail, or whose steps come upon fewer distinct examples
// than its owner wants, contributes zeros, as an absent one does. Whoever
// makes base and start can choose for which data it fails: to refuse the round for it
// would tell of one device, in the clear, whether it has such data. Nor must one
// provider's data decide over the others' contributions.
//
// The result depends on nothing but its arguments where Seed is given: not on
// who else contributes, nor on how many run at once.
func Contribute(ctx context.Context, trainer Trainer, data *Data, c Contribution) ([]int32, error) {
	if c.Log == nil {
		c.Log = discard{}
	}
	if c.Progress == nil {
		c.Progress = func(int64, int64) {}
	}
	units, err := data.draw(random(c.Seed, forProviders, c.Round))
	if err != nil {
		return nil, err
	}
	u := newUpdate(contract.Vector{Lattice: c.Lattice, Count: c.Count, Figures: c.Figures, Groups: c.Groups}, random(c.Seed, forRounding, c.Round))
	order := random(c.Seed, forBatches, c.Round)
	t := c.Task
	t.Columns = data.Columns()
	// Not by how many are in, nor by what each holds: a refusal would tell of that.
	groups := max(1, c.Groups)
	t.Work, t.MostSteps = c.Work/float64(max(1, c.Units)*groups), c.Task.Steps+c.Task.Scored
	if len(units) == 0 && len(data.units) > 0 && len(c.Seed) == 0 {
		// What refuses a round must not do so for those alone who have a unit in it: one
		// is trained, for nothing.
		t.Steps = c.steps(data.units[0].data)
		rows, err := data.units[0].data.order(order)
		if err != nil {
			return nil, err
		}
		t.Batches, t.Progress = data.units[0].data.batches(order, rows, t.Steps, t.Batch), func(int, int) {}
		t.Features = data.units[0].data.features
		delta, err := trainer.Train(ctx, t)
		clear(delta)
		if err != nil && !failed(err) {
			return nil, err
		}
	}
	var lambda []float32
	if c.Dual != nil {
		if err := c.Dual.begin(t); err != nil {
			return nil, err
		}
		lambda = c.Dual.lambda
	}
	var before, total int64
	type training struct {
		of   unit
		data *local
	}
	var all []training
	for _, one := range units {
		parts, err := c.parts(one)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			total += int64(c.steps(part))
			all = append(all, training{one, part})
		}
	}
	c.Progress(0, total)
	for _, one := range all {
		t.Steps = c.steps(one.data)
		rows, err := one.data.order(order)
		if err != nil {
			return nil, err
		}
		if t.Features = c.Task.Features; t.Features == nil {
			t.Features = one.data.features
		}
		averaged := one.of.averaged(one.data, rows, t.Steps*t.Batch)
		t.Batches = one.data.batches(order, rows, t.Steps, t.Batch)
		measured, err := c.score(ctx, trainer, t, one.data)
		if err != nil {
			clear(u.sum)
			return nil, err
		}
		pace := stopwatch{}
		t.Progress = func(done, _ int) { pace.step(); c.Progress(before+int64(done), total) }
		delta, err := trainer.Train(ctx, t)
		before += int64(t.Steps)
		if err == nil && len(delta) != len(t.Start) {
			err = fmt.Errorf("trainer returned %d values, %d expected", len(delta), len(t.Start))
		}
		if err == nil && averaged < c.MinExamples { // it trained all the same: nobody sees by its time that it has few
			clear(delta)
			err = fmt.Errorf("%w: %d, and its owner wants %d (--examples)", errFew, averaged, c.MinExamples)
		}
		if err == nil {
			for i, v := range lambda { // of the sum: each group has its share
				delta[i] += v / float32(groups)
			}
			var norm float64
			if measured != nil && len(c.Seed) == 0 { // no two runs have the same
				measured.Speed = pace.speed()
			}
			if norm, err = u.add(delta, c.Task.Weight(one.data.distinct(rows, one.data.n)*groups), measured, c.Labels); err == nil && c.Norm != nil {
				c.Norm(norm)
			}
			clear(delta)
		}
		if err != nil && failed(err) {
			c.Log.Warn("training came to nothing", "round", c.Round, "err", err)
			if c.Failed != nil {
				c.Failed(err)
			}
			continue
		}
		if err != nil {
			clear(u.sum)
			return nil, err
		}
	}
	if c.Dual != nil && !c.Dual.dual.Noisy {
		if err := c.Dual.end(t, c.Lattice, u.sum); err != nil {
			return nil, err
		}
	}
	if c.Own != (dp.Variance{}) {
		noise := c.Noise
		if noise == nil {
			noise = OwnNoise(c.Seed, c.Round)
		}
		if err := dp.AddOwn(u.sum, c.Own, noise); err != nil {
			return nil, err
		}
	}
	if c.Dual != nil && c.Dual.dual.Noisy {
		if err := c.Dual.end(t, c.Lattice, u.sum); err != nil {
			return nil, err
		}
	}
	return u.sum, nil
}

// failed tells whether training came to nothing, as it may for some data and not for
// other.
func failed(err error) bool {
	return errors.Is(err, ErrDiverged) || errors.Is(err, wasm.ErrTrap) || errors.Is(err, errFew)
}

// errFew is an update that averages fewer examples than its owner wants.
var errFew = errors.New("the update averages too few distinct examples")

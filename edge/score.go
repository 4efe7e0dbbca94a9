//go:build !js || full

package edge

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/leaf/uniform"
	"github.com/starling-fl/starling/internal/protocol/contract"
)

// scoresOffered reports whether this build scores what is held out: a page's light build does
// not, and is not loaded for jobs that ask for it.
const scoresOffered = true

// HoldOut sets a share of each unit's examples aside, to be scored and never trained on. The
// content of an example decides, so that it stays aside however a file grows or is sorted, and on
// every device that holds a copy of it. A unit that would lose all of its examples keeps them.
func (d *Data) HoldOut(share float64) error { return d.holdOut(share, nil) }

// holdOut is HoldOut, which calls pause between two examples where that is not nil.
func (d *Data) holdOut(share float64, pause func() error) error {
	for i := range d.units {
		u := &d.units[i]
		if err := u.data.holdOut(share, pause); err != nil {
			return err
		}
		u.regroup()
	}
	return nil
}

func (l *local) holdOut(share float64, pause func() error) error {
	row := task.NewBatch(l.columns, 1)
	apart := false
	var held []int
	for i := range l.n {
		if l.of == nil || i == 0 || l.of[i] != l.of[i-1] { // of a long example the first row decides
			if l.rows != nil {
				row.Copy(0, l.rows, i)
			} else { // as it is, and not as it may be drawn
				row.Clear(0)
				if err := l.task.Encode(&l.examples[i], row, 0); err != nil {
					return fmt.Errorf("%w: line %d: %w", ErrData, l.examples[i].Line, err)
				}
			}
			apart = lot(row) < share
		}
		if apart {
			held = append(held, i)
		}
		if pause != nil {
			if err := pause(); err != nil {
				return err
			}
		}
	}
	if len(held) < l.n {
		l.held = held
	}
	return nil
}

// lot is a number in [0, 1) that follows from a row.
func lot(row task.Batch) float64 {
	h := sha256.New()
	var b [4]byte
	for _, c := range row {
		for _, v := range c.I32 {
			binary.LittleEndian.PutUint32(b[:], uint32(v))
			h.Write(b[:])
		}
		for _, v := range c.F32 {
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
			h.Write(b[:])
		}
	}
	return float64(binary.LittleEndian.Uint64(h.Sum(nil))>>11) / (1 << 53)
}

// score runs the task's steps on some of a unit's held-out examples, none of which moves
// anything: at a learning rate of 0. It returns nothing if there are none, or where what
// came of them is not a number: such a unit says nothing. Only the end of ctx is an error; what
// else is wrong with the program, training says.
func (c Contribution) score(ctx context.Context, trainer Trainer, t Task, data *local) (*contract.Metrics, error) {
	if c.Figures.Size() == 0 || len(data.held) == 0 {
		return nil, nil
	}
	rnd := random(c.Seed, forScores, c.Round)
	order := append([]int(nil), data.held...)
	if err := uniform.Shuffle(rnd, order); err != nil {
		return nil, err //nolint:wrapcheck // of the source of randomness
	}
	size := max(1, t.Batch)
	order = order[:min(len(order), t.Scored*size)]
	t.Steps = (len(order) + size - 1) / size
	t.LearningRate, t.Progress = 0, nil
	t.Batches = data.batches(rnd, order, t.Steps, size)
	measured, rows, left := contract.Metrics{Speed: math.NaN()}, 0.0, len(order)
	t.Scores = func(loss, right float64) {
		n := float64(min(left, size))
		left -= size
		rows, measured.Loss, measured.Right = rows+n, measured.Loss+n*loss, measured.Right+n*right
	}
	_, err := trainer.Train(ctx, t)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	measured.Loss, measured.Right = measured.Loss/rows, measured.Right/rows
	if err != nil || math.IsNaN(measured.Loss) || math.IsInf(measured.Loss, 0) {
		c.Log.Warn("what was held out could not be scored", "round", c.Round, "err", err)
		return nil, nil
	}
	return &measured, nil
}

// stopwatch is how fast steps follow each other.
type stopwatch struct {
	first, last time.Time
	steps       int // behind the first, which may load a program
}

func (s *stopwatch) step() {
	if s.last = time.Now(); s.first.IsZero() {
		s.first = s.last
		return
	}
	s.steps++
}

// speed is the steps a second; NaN of less than two steps.
func (s *stopwatch) speed() float64 {
	if s.steps == 0 || !s.last.After(s.first) {
		return math.NaN()
	}
	return float64(s.steps) / s.last.Sub(s.first).Seconds()
}

// say writes what a unit found behind its symbols and count; nothing of one that found nothing.
func (u *update) encode(behind []int32, measured *contract.Metrics, labels int) error {
	if measured == nil || u.Figures.Size() == 0 {
		return nil
	}
	if err := u.Figures.Encode(behind, measured.Figures(labels), u.rounding); err != nil {
		return fmt.Errorf("edge: %w", err)
	}
	return nil
}

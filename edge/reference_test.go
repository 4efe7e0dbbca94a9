//go:build !race

// GoMLX's Go backend does pointer arithmetic that the race detector's checkptr
// stops at (compute v0.1.2, smallNoSIMDGenericTransposed): the reference runs
// without it.

package edge

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// The program and the reference on GoMLX's own backend change the adapter
// alike, at every rank and with every optimizer.
func TestProgramAgainstReference(t *testing.T) {
	againstReference(t, tinyBase(t))
}

// The same for the bases that transformers has saved.
func TestProgramAgainstReferenceByArchitecture(t *testing.T) {
	for _, kind := range []string{"bert", "roberta", "distilbert"} {
		base, err := model.LoadBaseDir(filepath.Join("..", "model", "nn", "testdata", kind))
		ok(t, err)
		againstReference(t, base)
	}
}

func againstReference(t *testing.T, base *model.Base) {
	trainer := NewProgramTrainer(1)
	defer trainer.Close()
	reference := nn.NewReference()
	defer reference.Close()
	for _, optimizer := range []nn.Optimizer{nn.SGD, nn.Momentum, nn.AdamW} {
		for _, rank := range []int{0, 1, 4} {
			s := step(base, rank, optimizer)
			tk := task(t, base, rank, compile(t, s, false))
			tk.Optimizer = string(optimizer)
			want, err := reference.Train(t.Context(), tk)
			ok(t, err)
			start := slices.Clone(tk.Start)
			var steps []int
			tk.Progress = func(done, total int) { steps = append(steps, done*100+total) }
			got, err := trainer.Train(t.Context(), tk)
			ok(t, err)
			var diff, size float64
			for i := range want {
				diff += math.Pow(float64(got[i]-want[i]), 2)
				size += math.Pow(float64(want[i]), 2)
			}
			if size == 0 || diff > 1e-8*size {
				t.Errorf("%s at rank %d: differs by %.2g of %.2g", optimizer, rank, math.Sqrt(diff), math.Sqrt(size))
			}
			if !slices.Equal(tk.Start, start) {
				t.Error("the trainer changed the start")
			}
			if !slices.Equal(steps, []int{104, 204, 304, 404}) {
				t.Errorf("progress %v", steps)
			}
			again, err := trainer.Train(t.Context(), tk)
			ok(t, err)
			if !slices.Equal(got, again) {
				t.Errorf("%s at rank %d: a second training on the same instance differs", optimizer, rank)
			}
		}
	}
}

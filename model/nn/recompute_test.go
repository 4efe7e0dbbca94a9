package nn

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/peft"
	"github.com/starling-fl/starling/wasm/compiler"
)

// A step that computes its layers again, or all of them but products, gives the loss to the bit and the gradients of one
// that keeps their activations, on the Go backend and as a compiled program; where more than
// layers is trained, none is computed again.
func TestRecomputedLayers(t *testing.T) {
	for _, name := range causalFamilies {
		dir, base, want := loadCausal(t, name)
		adapter, err := peft.Load(os.DirFS(filepath.Join(dir, "adapter")), base, model.TaskCausal, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := adapter.Layout()
		rank := l.Method.RMax
		s := StepSpec{Config: base.Config, Method: l.Method, Rank: rank, Sequence: len(want.Tokens[0]),
			Spec: training.Spec{Batch: len(want.Tokens), Optimizer: training.SGD}}
		for backend, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
			var deltas [3][]float32
			var losses [3]float32
			for i, again := range []Recompute{RecomputeNothing, RecomputeSelected, RecomputeLayers} {
				s.Recompute = again
				step, err := NewTrainerOn(be, s, base, map[string]compute.Buffer{})
				if err != nil {
					t.Fatalf("%s, %s: %v", name, backend, err)
				}
				delta, loss, err := step.Train(t.Context(), adapter.Slice(rank), []task.Batch{want.batch(t, l, true)}, 1)
				if err != nil {
					t.Fatalf("%s, %s: %v", name, backend, err)
				}
				deltas[i], losses[i] = delta, loss[0]
			}
			worst := 0.0
			for i := range deltas[0] {
				for _, again := range deltas[1:] {
					worst = max(worst, math.Abs(float64(deltas[0][i]-again[i])))
				}
			}
			if losses[0] != losses[1] || losses[0] != losses[2] || !(worst < 1e-6) {
				t.Errorf("%s, %s: losses %v, gradients differ by %v", name, backend, losses, worst)
			}
		}
	}
}

// A step that computes attention and activations again gives the loss and the gradients of one that keeps them: those of
// an encoder, and of a T5 whose distances are trained, too.
func TestRecomputedAttention(t *testing.T) {
	type step struct {
		spec  StepSpec
		base  *model.Base
		batch task.Batch
	}
	plain := testSpec(2)
	steps := map[string]step{"bert": {plain, testBase(t, plain.Config), testBatches(plain, 1)[0]}}
	base, _, want := loadT5(t)
	s := StepSpec{Config: base.Config, Rank: 3, Spec: training.Spec{Batch: 2, Optimizer: training.SGD}, Sequence: len(want.Tokens[0]),
		Method: model.Method{RMax: 4, Alpha: 8, Task: model.TaskAnswer, Answer: 4, Targets: "q,k,v,o", Also: "relative_attention_bias"}}
	lay, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	b := t5Batch(t, lay, want.Tokens[:2], [][]int32{{0, 7, 9, 0}, {0, 30, 12, 5}})
	for i := range b.Float32(task.Weights) {
		b.Int32(task.Labels)[i], b.Float32(task.Weights)[i] = int32(i+3), 1
	}
	steps["t5"] = step{s, base, b}
	for name, s := range steps {
		start := slice(t, s.spec)
		for i := range start { // away from the zero product and the zero head
			start[i] += 0.2 * float32(math.Sin(float64(i)*1.7))
		}
		for backend, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
			var deltas [2][]float32
			var losses [2]float32
			for i, again := range []Recompute{RecomputeNothing, RecomputeSelected} {
				s.spec.Recompute = again
				tr, err := NewTrainerOn(be, s.spec, s.base, map[string]compute.Buffer{})
				if err != nil {
					t.Fatalf("%s, %s: %v", name, backend, err)
				}
				delta, loss, err := tr.Train(t.Context(), start, []task.Batch{s.batch}, 1)
				if err != nil {
					t.Fatalf("%s, %s: %v", name, backend, err)
				}
				deltas[i], losses[i] = delta, loss[0]
			}
			worst, largest := 0.0, 0.0
			for i, d := range deltas[0] {
				worst, largest = max(worst, math.Abs(float64(d-deltas[1][i]))), max(largest, math.Abs(float64(d)))
			}
			if losses[0] != losses[1] || !(worst < 1e-6*largest) || !(largest > 0) {
				t.Errorf("%s, %s: losses %v, gradients of at most %v differ by %v", name, backend, losses, largest, worst)
			}
		}
	}
}

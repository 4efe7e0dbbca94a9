package nn

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/wasm/compiler"
)

// A step that computes its layers again, or all of them but products, gives the loss to the bit and the gradients of one
// that keeps their activations, on the Go backend and as a compiled program; where more than
// layers is trained, none is computed again.
func TestRecomputedLayers(t *testing.T) {
	defer func(activations, products int) { keptActivations, keptProducts = activations, products }(keptActivations, keptProducts)
	for _, name := range causalFamilies {
		dir, base, want := loadCausal(t, name)
		adapter, err := model.LoadPEFT(os.DirFS(filepath.Join(dir, "adapter")), base, model.TaskCausal, 0, nil)
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
			for i, kept := range [3][2]int{{1 << 40, 0}, {0, 1 << 40}, {0, 0}} {
				keptActivations, keptProducts = kept[0], kept[1]
				step, err := newTrainer(be, s, base, map[string]compute.Buffer{})
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

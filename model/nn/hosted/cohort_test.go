package hosted

import (
	"fmt"
	"math"
	"testing"

	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

// Clients whose steps are taken at once come to what each comes to alone, whatever is
// trained; fewer than there is room for too.
func TestCohortIsItsClients(t *testing.T) {
	for name, change := range map[string]func(*nn.StepSpec){
		"lora": func(*nn.StepSpec) {},
		"adamw": func(s *nn.StepSpec) {
			s.Spec = training.Spec{Batch: s.Batch, Optimizer: training.AdamW, WeightDecay: 0.01, LearningRate: 2, HeadLearningRate: 1}
		},
		"shampoo": func(s *nn.StepSpec) {
			s.Optimizer, s.StatisticsEvery, s.RootsEvery = training.Shampoo, 1, 2
		},
		"momentum":   func(s *nn.StepSpec) { s.Optimizer = training.Momentum },
		"every map":  func(s *nn.StepSpec) { s.Method.Targets, s.Method.Also = "query,output.dense", "LayerNorm" },
		"head":       func(s *nn.StepSpec) { s.Method, s.Rank = model.Method{RMax: 1, Alpha: 1, Kind: model.MethodHead}, 0 },
		"bitfit":     func(s *nn.StepSpec) { s.Method, s.Rank = model.Method{RMax: 1, Alpha: 1, Kind: model.MethodBitFit}, 0 },
		"full":       func(s *nn.StepSpec) { s.Method, s.Rank = model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull}, 0 },    // one by one
		"bottleneck": func(s *nn.StepSpec) { s.Method, s.Rank = model.Method{RMax: 1, Alpha: 1, Kind: model.MethodAdapter}, 0 }, // one by one
	} {
		t.Run(name, func(t *testing.T) {
			s := testSpec(2)
			change(&s)
			base := testBase(t, s.Config)
			h := New(goBackendOf(t), 1, func([]byte, *model.Base) (nn.StepSpec, error) { return s, nil })
			lay, err := s.Layout()
			if err != nil {
				t.Fatal(err)
			}
			all := testBatches(s, 9)
			tasks := make([]trainer.Task, 3)
			for i := range tasks {
				task := hostedTask(t, base, 1, 1)
				task.Layout, task.Rank, task.Start, task.Optimizer = lay, s.Rank, slice(t, s), s.Optimizer
				task.Batches = trainer.Batches(all[3*i : 3*i+3]...)
				tasks[i] = task
			}
			for k, room := range []int{3, 5, 2} { // the last is too small: one by one
				for i, got := range h.Together(room).TrainAll(t.Context(), tasks) {
					want, err := h.Train(t.Context(), tasks[i])
					if err != nil || got.Err != nil {
						t.Fatal(err, got.Err)
					}
					var off, size float64
					for j := range want {
						off += math.Pow(float64(got.Delta[j]-want[j]), 2)
						size += math.Pow(float64(want[j]), 2)
					}
					if off = math.Sqrt(off / size); !(off <= 1e-4) || size == 0 {
						t.Errorf("%d: client %d of a cohort of %d is off by %.2g of its update of %.2g", k, i, room, off, size)
					}
				}
			}
			made := 0
			for _, step := range h.steps {
				if step.trainer.Spec.Clients > 0 {
					made++
				}
			}
			if apart := name == "full" || name == "bottleneck"; made != 2 && !apart || made != 0 && apart {
				t.Errorf("%d steps were made for several clients", made)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// One client's broken data is its own trouble.
func TestCohortFailsByClient(t *testing.T) {
	s := testSpec(2)
	h := New(goBackendOf(t), 1, func([]byte, *model.Base) (nn.StepSpec, error) { return s, nil })
	defer h.Close()
	base := testBase(t, s.Config)
	tasks := []trainer.Task{hostedTask(t, base, 1, 2), hostedTask(t, base, 1, 2), hostedTask(t, base, 1, 2)}
	tasks[1].Start = append([]float32(nil), tasks[1].Start...)
	for i := range tasks[1].Start {
		tasks[1].Start[i] = float32(math.NaN())
	}
	for i, got := range h.Together(3).TrainAll(t.Context(), tasks) {
		if (got.Err != nil) != (i == 1) {
			t.Errorf("client %d: %v", i, got.Err)
		}
	}
	tasks[2].Batches = func(yield func(trainer.Batch, error) bool) { yield(trainer.Batch{}, fmt.Errorf("no data")) }
	for i, got := range h.Together(3).TrainAll(t.Context(), tasks[1:]) {
		if got.Err == nil {
			t.Errorf("client %d trained without a batch", i+1)
		}
	}
}

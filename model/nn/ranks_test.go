package nn

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestRanksMatchTheNumpyTwin holds predictions and training steps at ranks 1, 8 and 16,
// under both rules for the scale, to a twin in numpy (lab/bench/interop/ranks.py), which PEFT
// agrees with at each rank.
func TestRanksMatchTheNumpyTwin(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "ranks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Tokens [][]int32
		Labels []int32
		RMax   int `json:"r_max"`
		Alpha  float64
		Cases  []struct {
			Scale    string
			Rank     int
			Logits   [][]float64
			Places   []int
			Gradient []float64
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	base, err := model.LoadBaseDir(filepath.Join("testdata", "bert"))
	if err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) != 6 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	seq := len(golden.Tokens[0])
	for _, c := range golden.Cases {
		what := fmt.Sprintf("scale %s, rank %d", c.Scale, c.Rank)
		scaling, err := model.ParseScaling(c.Scale)
		if err != nil {
			t.Fatal(err)
		}
		s := StepSpec{Config: base.Config, Method: model.Method{RMax: golden.RMax, Alpha: golden.Alpha, Scaling: scaling}, Classes: 3, Rank: c.Rank,
			Spec: training.Spec{Batch: len(golden.Tokens), Optimizer: training.SGD}, Sequence: seq}
		lay, err := s.Layout()
		if err != nil {
			t.Fatal(err)
		}
		full := make([]float32, lay.Size(golden.RMax))
		for i := range full {
			full[i] = float32((float64(uint32(i*2654435761)>>16)/65536 - 0.5) / 2)
		}
		adapter := model.NewAdapter(lay, 0)
		if err := adapter.SetSlice(golden.RMax, full); err != nil {
			t.Fatal(err)
		}
		plain, err := NewPredictor(lay, base, seq, nil)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := NewPredictor(lay, base, seq, compiler.New())
		if err != nil {
			t.Fatal(err)
		}
		for name, p := range map[string]*Predictor{"Go": plain, "compiled": compiled} {
			got, err := p.Logits(t.Context(), adapter.Slice(c.Rank), c.Rank, golden.Tokens)
			if err != nil {
				t.Fatal(err)
			}
			sameLogits(t, what+", "+name, got, c.Logits)
		}

		// A step of SGD at rate 1 is the gradient.
		batch := emptyBatch(s)
		for r, row := range golden.Tokens {
			copy(batch.Int32(task.Tokens)[r*seq:], row)
			batch.Int32(task.Labels)[r], batch.Float32(task.Weights)[r] = golden.Labels[r], 1
		}
		tr, err := NewTrainer(s, base)
		if err != nil {
			t.Fatal(err)
		}
		delta, _, err := tr.Train(t.Context(), adapter.Slice(c.Rank), []trainer.Batch{batch}, 1)
		if err != nil {
			t.Fatal(err)
		}
		largest := 0.0
		for _, g := range c.Gradient {
			largest = math.Max(largest, math.Abs(g))
		}
		for k, i := range c.Places {
			if d := math.Abs(float64(delta[i]) + c.Gradient[k]); !(d <= 2e-5*largest) {
				t.Errorf("%s: the step moves value %d by %v, the twin's gradient is %v", what, i, delta[i], c.Gradient[k])
			}
		}
	}
}

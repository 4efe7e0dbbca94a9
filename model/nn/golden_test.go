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
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestLogitsMatchTransformers holds checkpoints that transformers has saved, one of
// every architecture, to the logits that it computes: on the Go backend and as a
// compiled program.
func TestLogitsMatchTransformers(t *testing.T) {
	for _, kind := range []string{"bert", "roberta", "distilbert", "electra"} {
		dir := filepath.Join("testdata", kind)
		base, err := model.LoadBaseDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		head, err := model.LoadHead(os.DirFS(dir), base.Config, base.Config.DefaultTask())
		if err != nil {
			t.Fatal(err)
		}
		adapter, err := model.HeadAdapter(base.Config, base.Config.DefaultTask(), 3, head)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Tokens [][]int32
			Logits [][]float64
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		seq := len(want.Tokens[0])
		plain, err := NewPredictor(adapter.Layout(), base, seq, nil)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := NewPredictor(adapter.Layout(), base, seq, compiler.New())
		if err != nil {
			t.Fatal(err)
		}
		for name, p := range map[string]*Predictor{"Go": plain, "compiled": compiled} {
			for _, rank := range []int{0, 1} { // LoRA's product is zero
				got, err := p.Logits(t.Context(), adapter.Slice(rank), rank, want.Tokens)
				if err != nil {
					t.Fatal(err)
				}
				sameLogits(t, fmt.Sprintf("%s, rank %d", kind+", "+name, rank), got, want.Logits)
			}
		}
	}
}

// What training changes is what prediction adds: the loss after a step is the one of
// the logits at the changed values, whatever the method.
func TestPredictorFollowsEveryMethod(t *testing.T) {
	base, err := model.LoadBaseDir(filepath.Join("testdata", "bert"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct {
		method model.Method
		rank   int
	}{
		{model.Method{RMax: 1, Alpha: 1, Kind: model.MethodBitFit}, 0},
		{model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull}, 0},
		{model.Method{RMax: 1, Alpha: 1, Kind: model.MethodAdapter}, 0},
		{model.Method{RMax: 1, Alpha: 1, Kind: model.MethodCompacter, Blocks: 4}, 0},
		{model.Method{RMax: 3, Alpha: 4, Targets: "query,output.dense", Also: "query,embeddings.LayerNorm"}, 2},
		{model.Method{RMax: 3, Alpha: 4, Scaling: model.ScaleConstant}, 1},
	} {
		s := StepSpec{Config: base.Config, Method: m.method, Classes: 3, Rank: m.rank, Spec: training.Spec{Batch: 4, Optimizer: training.AdamW}, Sequence: 12}
		lay, err := s.Layout()
		if err != nil {
			t.Fatal(err)
		}
		tr, err := NewTrainer(s, base)
		if err != nil {
			t.Fatal(err)
		}
		batches := testBatches(s, 1)
		v := model.NewAdapter(lay, 5).Slice(m.rank)
		var losses []float32
		for range 6 {
			delta, l, err := tr.Train(t.Context(), v, batches, 0.01)
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, l...)
			for i := range v {
				v[i] += delta[i]
			}
		}
		_, last, err := tr.Train(t.Context(), v, batches, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !(last[0] < 0.95*losses[0]) {
			t.Errorf("%+v: loss %v -> %v", m.method, losses[0], last[0])
		}
		p, err := NewPredictor(lay, base, 12, nil)
		if err != nil {
			t.Fatal(err)
		}
		var rows [][]int32
		for i := range 4 {
			rows = append(rows, batches[0].Int32(task.Tokens)[12*i:12*i+12])
		}
		logits, err := p.Logits(t.Context(), v, m.rank, rows)
		if err != nil {
			t.Fatal(err)
		}
		loss := 0.0
		for i, row := range logits {
			sum := 0.0
			for _, x := range row {
				sum += math.Exp(float64(x))
			}
			loss += (math.Log(sum) - float64(row[batches[0].Int32(task.Labels)[i]])) / 4
		}
		if d := math.Abs(loss - float64(last[0])); d > 1e-4 {
			t.Errorf("%+v: prediction has the loss %v, training %v", m.method, loss, last[0])
		}
	}
}

// sameLogits holds rows of logits against a golden's.
func sameLogits(t *testing.T, what string, got [][]float32, want [][]float64) {
	t.Helper()
	worst, size := 0.0, 0.0
	for i, row := range want {
		for j, x := range row {
			worst, size = math.Max(worst, math.Abs(x-float64(got[i][j]))), math.Max(size, math.Abs(x))
		}
	}
	if !(worst <= 1e-5*size) {
		t.Errorf("%s: logits differ by %v of %v", what, worst, size)
	}
}

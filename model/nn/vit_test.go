package nn

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// A ViT that transformers has saved gives transformers' logits, on the Go backend and
// as a compiled program, and a step of descent on it makes the loss smaller.
func TestImageLogitsMatchTransformers(t *testing.T) {
	dir := filepath.Join("testdata", "vit")
	base, err := model.LoadBaseDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	head, err := model.LoadHead(os.DirFS(dir), base.Config, model.TaskImage)
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := model.HeadAdapter(base.Config, model.TaskImage, 3, head)
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Pixels [][]float32
		Logits [][]float64
	}
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err == nil {
		err = json.Unmarshal(data, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	k, err := task.New(base, adapter.Layout(), 1)
	if err != nil {
		t.Fatal(err)
	}
	var examples []dataset.Example
	for i, p := range want.Pixels {
		examples = append(examples, dataset.Example{Label: i % 3, Image: &dataset.Image{Width: 8, Height: 8, Channels: 3, Pixels: p}})
	}
	rows, err := task.EncodeAll(k, examples)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := NewPredictor(adapter.Layout(), base, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := NewPredictor(adapter.Layout(), base, 1, compiler.New())
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Predictor{"Go": plain, "compiled": compiled} {
		for _, rank := range []int{0, 1} {
			got, err := p.Outputs(t.Context(), adapter.Slice(rank), rank, rows, len(examples))
			if err != nil {
				t.Fatal(err)
			}
			sameLogits(t, fmt.Sprintf("%s, rank %d", name, rank), got, want.Logits)
		}
	}
	s := StepSpec{Config: base.Config, Method: model.Method{RMax: 2, Alpha: 2, Task: model.TaskImage}, Classes: 3, Rank: 2,
		Spec: training.Spec{Batch: len(examples), Optimizer: training.SGD}, Sequence: 1}
	tr, err := NewTrainer(s, base)
	if err != nil {
		t.Fatal(err)
	}
	lay, _ := s.Layout()
	_, losses, err := tr.Train(t.Context(), model.NewAdapter(lay, 1).Slice(2), []task.Batch{rows, rows, rows, rows}, 0.05)
	if err != nil || !(losses[3] < losses[0]) {
		t.Errorf("losses %v, %v", losses, err)
	}
}

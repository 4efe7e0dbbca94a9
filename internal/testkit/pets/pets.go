// Package pets makes a released adapter that writes, for tests.
package pets

import (
	"slices"
	"sync"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// Learned is a model of bytes that has learnt to write "dog. é" behind "cat".
func Learned(t testing.TB) *model.Checkpoint {
	t.Helper()
	base := tiny.Decoder(t, 16, 64)
	base.Config.Decoder.Chat.Template = "{% for m in messages %}{{ m.content }}{% endfor %}{% if not add_generation_prompt %}.{% endif %}"
	m := model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull, Task: model.TaskCausal}
	s := nn.StepSpec{Config: base.Config, Method: m, Spec: training.Spec{Batch: 1, Optimizer: training.AdamW}, Sequence: 16}
	l, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	a := model.NewAdapter(l, 1)
	if err := a.SetSlice(0, learned(t, s, base, a)); err != nil {
		t.Fatal(err)
	}
	return &model.Checkpoint{CheckpointInfo: model.CheckpointInfo{Job: "pets", Seq: s.Sequence, Method: m}, Base: base, Adapter: a}
}

// once is what training came to: a package's tests share it.
var once struct {
	sync.Mutex
	slice []float32
}

func learned(t testing.TB, s nn.StepSpec, base *model.Base, a *model.Adapter) []float32 {
	t.Helper()
	once.Lock()
	defer once.Unlock()
	if once.slice != nil {
		return once.slice
	}
	k, err := task.New(base, a.Layout(), s.Sequence)
	if err != nil {
		t.Fatal(err)
	}
	b, err := task.EncodeAll(k, []dataset.Example{{Prompt: "cat", Completion: "dog. é"}})
	if err != nil {
		t.Fatal(err)
	}
	step, err := nn.NewTrainer(s, base)
	if err != nil {
		t.Fatal(err)
	}
	start := a.Slice(0)
	delta, losses, err := step.Train(t.Context(), start, slices.Repeat([]task.Batch{b}, 60), 0.02)
	if err != nil || losses[59] > 0.05 {
		t.Fatal(losses, err)
	}
	for i := range delta {
		delta[i] += start[i]
	}
	once.slice = delta
	return delta
}

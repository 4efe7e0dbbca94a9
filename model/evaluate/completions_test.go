package evaluate

import (
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm/compiler"
)

// A model that has learnt one completion scores it; and where every token is told rightly, as
// a Labeller scores them, what is written is what is right.
func TestCompletions(t *testing.T) {
	base := tiny.Decoder(t, 16, 64)
	base.Config.Decoder.Chat.Template = "{% for m in messages %}{{ m.role[0] }}{{ m.content }}<|endoftext|>{% endfor %}{% if add_generation_prompt %}a{% endif %}"
	s := nn.StepSpec{Config: base.Config, Method: model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull, Task: model.TaskCausal},
		Sequence: 20, Spec: training.Spec{Batch: 2, Optimizer: training.AdamW}}
	l, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	k, err := task.New(base, l, s.Sequence)
	if err != nil {
		t.Fatal(err)
	}
	set := &dataset.Set{Examples: []dataset.Example{{Prompt: "lamp on", Completion: `{"a": 1}`}, {Prompt: "another prompt that is long", Completion: `{"b": [2]}`},
		{Messages: `[{"role":"user","content":"on"},{"role":"assistant","content":"{\"a\": 1}"}]`}}}
	b, err := task.EncodeAll(k, []dataset.Example{set.Examples[0], set.Examples[2]})
	if err != nil {
		t.Fatal(err)
	}
	step, err := nn.NewTrainer(s, base)
	if err != nil {
		t.Fatal(err)
	}
	a := model.NewAdapter(l, 1)
	delta, losses, err := step.Train(t.Context(), a.Slice(0), slices.Repeat([]task.Batch{b}, 80), 0.02)
	if err != nil || losses[79] > 0.05 {
		t.Fatal(losses[79], err)
	}
	for i, x := range a.Slice(0) {
		delta[i] += x
	}
	for name, c := range map[string]struct {
		examples []dataset.Example
		exact    float64
	}{"learnt": {set.Examples[:1], 1}, "both": {set.Examples[:2], 0.5}, "conversation": {set.Examples[2:], 1}} {
		part := &dataset.Set{Examples: c.examples}
		w, err := NewCompletions(compiler.New(), base, l, s.Sequence, part)
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		got, err := w.Score(t.Context(), delta, 0, func(done int) { told = done })
		if err != nil || got.ExactMatch != c.exact || got.SameJSON != c.exact || got.RougeL < c.exact || got.Completions != len(c.examples) || told != w.Len() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		labelled, err := NewLabelled(compiler.New(), base, l, s.Sequence, part)
		if err != nil {
			t.Fatal(err)
		}
		said, _, err := labelled[0].Predict(t.Context(), delta, 0, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range said {
			if !slices.Equal(said[i], labelled[0].Right[i]) {
				t.Errorf("%s: token %d of the learnt one is told as %v", name, i, said[i])
			}
		}
	}
	if w, err := NewCompletions(nil, base, l, s.Sequence, &dataset.Set{Examples: []dataset.Example{{Text: "a text"}}}); w != nil || err != nil {
		t.Errorf("texts without completions: %v, %v", w, err)
	}
}

// A text that is several rows of the model's is scored by all of them.
func TestLongTextsAreScored(t *testing.T) {
	base := tiny.Decoder(t, 16, 64)
	l, err := model.NewLayout(base.Config, model.Method{RMax: 1, Alpha: 1, Task: model.TaskCausal}, 0)
	if err != nil {
		t.Fatal(err)
	}
	set := &dataset.Set{Examples: []dataset.Example{{Text: "a shop in a long street, open all day"}}}
	of, err := NewLabelled(nil, base, l, 12, set)
	if err != nil {
		t.Fatal(err)
	}
	if score, err := of[0].Score(t.Context(), model.NewAdapter(l, 1), 1); err != nil || len(of[0].Examples) < 3 || len(of[0].Right) < len("a shop in a long street") || score.Perplexity == nil {
		t.Errorf("%d rows, %d tokens, %+v, %v", len(of[0].Examples), len(of[0].Right), score, err)
	}
}

package evaluate

import (
	"math"
	"strings"
	"testing"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	embedded "github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm/compiler"
)

// The loss of each example is what a training step of that example alone says it is, for
// labels, words, answers that are written, parts of documents that are and answers that are found.
func TestExaminedLossIsTheStepsLoss(t *testing.T) {
	documents, err := embedded.Documents()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := dataset.Documents(dataset.DocumentConfig{Seed: 1, Split: "test", Clients: 2, PerClient: 6, Providers: 1})
	if err != nil {
		t.Fatal(err)
	}
	small := tiny.Base(t, 16, 2, 64)
	long := strings.Repeat("over the lazy dog ", 12)
	for name, c := range map[string]struct {
		base     *model.Base
		kind     model.TaskKind
		sequence int
		classes  int
		examples []dataset.Example
	}{
		"labels":  {small, model.TaskClassify, 12, 3, []dataset.Example{{Text: "the quick brown fox"}, {Text: "lazy", Label: 2}}},
		"words":   {small, model.TaskTag, 16, 3, []dataset.Example{{Words: []string{"quick", "fox"}, Tags: []int{0, 2}}}},
		"answers": {documents, model.TaskAnswer, 96, 0, asked.Examples},
		"hidden":  {documents, model.TaskPretrain, 120, 0, asked.Examples},
		"spans": {small, model.TaskSpan, 48, 0, []dataset.Example{{Question: "fox", Text: "the quick brown fox jumps", Answers: []string{"brown fox", "quick"}},
			{Question: "dog", Text: "the lazy dog"}}},
		"parts": {small, model.TaskSpan, 24, 0, []dataset.Example{{Question: "fox", Text: "the quick brown fox " + long, Answers: []string{"quick"}}}},
	} {
		s := nn.StepSpec{Config: c.base.Config, Method: model.Method{RMax: 2, Alpha: 2, Kind: model.MethodFull, Task: c.kind}, Sequence: c.sequence,
			Classes: c.classes, Spec: training.Spec{Batch: 1, Optimizer: training.AdamW}}
		if c.base == documents {
			s.Method.Answer = 16
		}
		l, err := s.Layout()
		if err != nil {
			t.Fatal(name, err)
		}
		x, err := NewExaminer(compiler.New(), c.base, l, c.sequence)
		if err != nil {
			t.Fatal(name, err)
		}
		k, err := task.New(c.base, l, c.sequence)
		if err != nil {
			t.Fatal(name, err)
		}
		step, err := nn.NewTrainer(s, c.base)
		if err != nil {
			t.Fatal(name, err)
		}
		adapter := model.NewAdapter(l, 1)
		got, err := x.Examine(t.Context(), adapter.Slice(0), 0, c.examples)
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range c.examples {
			parts, _, err := task.Rows(k, c.examples[i:i+1])
			if err != nil {
				t.Fatal(name, err)
			}
			want := 0.0
			for p := range parts {
				b, err := task.EncodeAll(k, parts[p:p+1])
				if err != nil {
					t.Fatal(name, err)
				}
				_, losses, err := step.Train(t.Context(), adapter.Slice(0), []task.Batch{b}, 1e-9)
				if err != nil {
					t.Fatal(name, err)
				}
				want += float64(losses[0]) / float64(len(parts))
			}
			if math.Abs(got[i].Loss-want) > 2e-4*max(1, want) {
				t.Errorf("%s: example %d has a loss of %.6f, a step's is %.6f", name, i, got[i].Loss, want)
			}
			if got[i].Confidence < 0 || got[i].Confidence > 1+1e-6 || got[i].Similarity < 0 || got[i].Similarity > 1 {
				t.Errorf("%s: %+v", name, got[i])
			}
		}
	}
}

// Sums over what is examined are what an evaluator says of the set.
func TestExaminedSumsUp(t *testing.T) {
	base, err := embedded.Documents()
	if err != nil {
		t.Fatal(err)
	}
	l, err := model.NewLayout(base.Config, model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull, Task: model.TaskAnswer, Answer: 16}, 0)
	if err != nil {
		t.Fatal(err)
	}
	set, err := dataset.Documents(dataset.DocumentConfig{Seed: 2, Split: "test", Clients: 5, PerClient: 4, Providers: 1})
	if err != nil {
		t.Fatal(err)
	}
	slice := model.NewAdapter(l, 1).Slice(0)
	x, err := NewExaminer(compiler.New(), base, l, 96)
	if err != nil {
		t.Fatal(err)
	}
	each, err := x.Examine(t.Context(), slice, 0, set.Examples)
	if err != nil {
		t.Fatal(err)
	}
	q, err := NewQuestions(compiler.New(), base, l, 96, set)
	if err != nil {
		t.Fatal(err)
	}
	replies, err := q[0].Answer(t.Context(), slice, 0, set.Examples)
	if err != nil {
		t.Fatal(err)
	}
	want, got := q[0].Judge(replies), AnswerScore{}
	for i, e := range each {
		got.ExactMatch += e.Right / float64(len(each))
		got.ANLS += e.Similarity / float64(len(each))
		got.Confidence += e.Confidence / float64(len(each))
		if e.Answer != strings.TrimSpace(replies[i].Text) {
			t.Errorf("said %q, then %q", e.Answer, replies[i].Text)
		}
	}
	if math.Abs(got.ExactMatch-want.ExactMatch)+math.Abs(got.ANLS-want.ANLS)+math.Abs(got.Confidence-want.Confidence) > 1e-9 || want.ANLS == 0 {
		t.Errorf("%+v, the evaluator has %+v", got, want)
	}
	if e := x.Unasked(set.Examples[0]); e.Question != "" || len(e.Words) == 0 {
		t.Errorf("%+v", e)
	}
	if _, err := x.Examine(t.Context(), slice, 0, []dataset.Example{{Text: "a", Question: "b"}}); err == nil {
		t.Error("a question without an answer was examined")
	}
}

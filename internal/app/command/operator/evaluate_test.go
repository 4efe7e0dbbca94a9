package operator

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/evaluate"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// The test split never measures a coordinator's rounds, of which the rank is
// chosen: neither in the demo nor in serve, neither at the end nor live.
func TestTheTestSplitChoosesNothing(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	j := job.Default()
	j.Name, j.Labels = "splits", []string{"a", "b"}
	j = j.ForBase(b.Config)
	layout, err := outcome.Layout(j, b)
	if err != nil {
		t.Fatal(err)
	}
	// The splits are told apart by the labels that they have.
	split := func(n, label int) *dataset.Set {
		s := &dataset.Set{Labels: j.Labels}
		for i := range n {
			s.Examples = append(s.Examples, dataset.Example{Text: fmt.Sprint("text ", i), Label: label})
		}
		return s
	}
	n := evaluation.LiveExamples + 7 // so that the live evaluator is a sample
	dir := t.TempDir()
	file := func(name, label string) string {
		var lines []byte
		for i := range n {
			lines = fmt.Appendf(lines, "{\"text\": \"text %d\", \"label\": %q}\n", i, label)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, lines, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	validation, test := file("validation.jsonl", "a"), file("test.jsonl", "b")
	data := &fleetdata.Data{Validation: split(n, 0), Test: split(n, 1)}
	for name, made := range map[string]func() (evaluation.Labelled, error){
		"demo": func() (evaluation.Labelled, error) {
			return evaluation.NewLabelled(b, layout, j.Adapter.Sequence, data.Validation, data.Test)
		},
		"serve": func() (evaluation.Labelled, error) {
			m, err := evaluation.ReadSplits(validation, test, dataset.Columns{}, j, b)
			s, _ := m.(evaluation.Labelled)
			return s, err
		},
	} {
		s, err := made()
		if err != nil {
			t.Fatal(err)
		}
		var cfg coordinator.Config
		s.Choose(&cfg)
		for what, e := range map[string]metric.Evaluator{"the evaluator": cfg.Evaluator, "the live evaluator": cfg.Live} {
			given, ok := e.(*evaluate.Labelled)
			if !ok || len(given.Right) < evaluation.LiveExamples {
				t.Fatalf("%s: %s is %T", name, what, e)
			}
			for _, label := range given.Right {
				if label[0] != 0 {
					t.Fatalf("%s: %s scores a text of the test split", name, what)
				}
			}
		}
		if s.Test == nil || len(s.Test.Right) != n || s.Test.Right[0][0] != 1 {
			t.Errorf("%s: the result is not of the test split", name)
		}
	}
	var cfg coordinator.Config
	if (evaluation.Labelled{Test: &evaluate.Labelled{}}).Choose(&cfg); cfg.Evaluator != nil || cfg.Live != nil {
		t.Error("without a validation split something measures the rounds")
	}
}

// An evaluator's loss is the mean cross-entropy of the right labels: of an adapter
// that says nothing yet the logarithm of how many there are.
func TestValidationLoss(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	j := job.Default()
	j.Name, j.Labels = "loss", []string{"a", "b", "c"}
	j = j.ForBase(b.Config)
	layout, err := outcome.Layout(j, b)
	if err != nil {
		t.Fatal(err)
	}
	set := &dataset.Set{Labels: j.Labels, Examples: []dataset.Example{{Text: "one", Label: 0}, {Text: "two", Label: 1}, {Text: "six", Label: 0}}}
	s, err := evaluation.NewLabelled(b, layout, j.Adapter.Sequence, set, nil)
	if err != nil {
		t.Fatal(err)
	}
	adapter := model.NewAdapter(layout, 1)
	measured, err := s.Validation.Evaluate(t.Context(), adapter, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	for rank, m := range measured {
		if math.Abs(m.Loss-math.Log(3)) > 1e-6 {
			t.Errorf("rank %d: the loss of a fresh adapter is %v, want ln 3", rank, m.Loss)
		}
	}
}

// Nor do the questions of the test split.
func TestTheTestQuestionsChooseNothing(t *testing.T) {
	split := func(truth string) *evaluate.Questions {
		a := &evaluate.Questions{}
		for i := range evaluation.LiveQuestions + 7 { // so that the live evaluator is a sample
			a.Examples = append(a.Examples, dataset.Example{Text: fmt.Sprint("text ", i)})
			a.Truths = append(a.Truths, []string{truth})
		}
		return a
	}
	var cfg coordinator.Config
	evaluation.Questions{Validation: split("validation"), Test: split("test")}.Choose(&cfg)
	for what, e := range map[string]metric.Evaluator{"the evaluator": cfg.Evaluator, "the live evaluator": cfg.Live} {
		given, ok := e.(*evaluate.Questions)
		if !ok || len(given.Truths) < evaluation.LiveQuestions {
			t.Fatalf("%s is %T", what, e)
		}
		for _, truths := range given.Truths {
			if truths[0] != "validation" {
				t.Fatalf("%s scores a question of the test split", what)
			}
		}
	}
}

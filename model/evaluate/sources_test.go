package evaluate

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model/evaluate/answer"
)

// A large source counts no more than a small one in the mean of two steps.
func TestScoresBySource(t *testing.T) {
	q := &Questions{}
	for i, source := range []string{"a", "a", "a", "b"} {
		q.Examples = append(q.Examples, dataset.Example{Source: source, Line: i})
		q.Truths = append(q.Truths, []string{"yes"})
	}
	s := q.Judge([]answer.Reply{{Text: "yes", Probability: 1}, {Text: "no", Probability: 1}, {Text: "no", Probability: 1}, {Text: "yes", Probability: 1}})
	exact := func(x AnswerScore) float64 { return x.ExactMatch }
	if s.ExactMatch != 0.5 || len(s.Sources) != 2 || math.Abs(s.Sources["a"].ExactMatch-1.0/3) > 1e-12 || s.Sources["b"].ExactMatch != 1 {
		t.Errorf("%+v", s)
	}
	if got := s.MeanOverSources(exact); math.Abs(got-2.0/3) > 1e-12 {
		t.Errorf("mean of the sources %v, want 2/3", got)
	}
	for i := range q.Examples {
		q.Examples[i].Source = "a"
	}
	if s = q.Judge([]answer.Reply{{Text: "yes", Probability: 1}, {Text: "no", Probability: 1}, {Text: "no", Probability: 1}, {Text: "yes", Probability: 1}}); s.Sources != nil || s.MeanOverSources(exact) != 0.5 {
		t.Errorf("one source: %+v", s)
	}
}

package evaluate

import (
	"math"
	"testing"
)

// A class that is never there does not count, one that is never told counts as 0.
func TestScoreOf(t *testing.T) {
	s := scoreOf([]int{0, 0, 1, 0}, []int{0, 1, 1, 2}, 4)
	// Class 0: 1 of 3 told and of 1 there; class 1: 1 of 1 and of 2; class 2: none.
	want := (2.0/4 + 2.0/3 + 0) / 3
	if s.Accuracy != 0.5 || math.Abs(s.MacroF1-want) > 1e-12 {
		t.Errorf("%+v, want accuracy 0.5, macro-F1 %v", s, want)
	}
}

func TestScoreReplies(t *testing.T) {
	s := ScoreReplies([]Reply{{"Paris", 0.5}, {"in the year 1984", 1}}, [][]string{{"paris"}, {"1985", "1984"}})
	if s.ExactMatch != 0.5 || s.Confidence != 0.75 || s.TokenF1 <= 0.5 || s.TokenF1 >= 1 || s.ANLS < 0.5 {
		t.Errorf("%+v", s)
	}
}

func TestCommonest(t *testing.T) {
	e := &Labelled{Labels: []int{2, 0, 2, 1}, Classes: 3}
	if got := e.Commonest(); got != 0.5 {
		t.Errorf("%v, want 0.5", got)
	}
}

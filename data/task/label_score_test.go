package task

import (
	"math"
	"testing"
)

func single(labels ...int) (out [][]int) {
	for _, l := range labels {
		out = append(out, []int{l})
	}
	return out
}

// A class that is never there does not count, one that is never told counts as 0.
func TestScoreOf(t *testing.T) {
	s := ScoreOf(&classify{}, single(0, 0, 1, 0), single(0, 1, 1, 2), 2, 4, nil)
	// Class 0: 1 of 3 told and of 1 there; class 1: 1 of 1 and of 2; class 2: none.
	want := (2.0/4 + 2.0/3 + 0) / 3
	if s.Accuracy != 0.5 || s.Loss != 0.5 || math.Abs(s.MacroF1-want) > 1e-12 {
		t.Errorf("%+v, want accuracy and loss 0.5, macro-F1 %v", s, want)
	}
}

func TestCommonest(t *testing.T) {
	if got := MajorityAccuracy(single(2, 0, 2, 1)); got != 0.5 {
		t.Errorf("%v, want 0.5", got)
	}
}

// Probabilities are those of the losses, and add up to 1.
func TestOneOf(t *testing.T) {
	scores, sum := []float32{-1000, 3, 1000, 999}, 0.0
	for i, p := range OneOf.Probabilities(scores) {
		sum += p
		if want := math.Exp(-OneOf.Loss(scores, []int{i})); math.Abs(p-want) > 1e-15 {
			t.Errorf("%v of label %d, want %v", p, i, want)
		}
	}
	if said := OneOf.Predicted(scores); math.Abs(sum-1) > 1e-12 || len(said) != 1 || said[0] != 2 {
		t.Errorf("probabilities of %v, %v said", sum, said)
	}
}

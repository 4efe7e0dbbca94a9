package nn

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/model"
)

// The head's rate applies to the head alone: a step of plain descent moves it by as
// many times more, and leaves the others where they were.
func TestHeadRate(t *testing.T) {
	base := testBase(t, testSpec(2).Config)
	move := func(headRate float64) []float32 {
		s := testSpec(2)
		s.LearningRate, s.HeadLearningRate = 1, headRate
		tr, err := NewTrainer(s, base)
		if err != nil {
			t.Fatal(err)
		}
		start := slice(t, s)
		for i := range start {
			start[i] += 0.1 * float32(math.Sin(float64(i)))
		}
		delta, _, err := tr.Train(t.Context(), start, testBatches(s, 1), 0.01)
		if err != nil {
			t.Fatal(err)
		}
		return delta
	}
	lay, err := testSpec(2).Layout()
	if err != nil {
		t.Fatal(err)
	}
	plain, scaled := move(0), move(5)
	for _, span := range lay.Spans(2) {
		want := 1.0
		if span.Kind == model.KindHead {
			want = 5
		}
		for i := span.Offset; i < span.Offset+span.Len; i++ {
			if d := float64(scaled[i]) - want*float64(plain[i]); math.Abs(d) > 1e-6+1e-3*math.Abs(float64(scaled[i])) {
				t.Fatalf("%s[%d] moves by %v, want %v times %v", span.Name, i-span.Offset, scaled[i], want, plain[i])
			}
		}
	}
	s := testSpec(1)
	s.LearningRate, s.HeadLearningRate = 1, -1
	if _, err := s.Layout(); err == nil {
		t.Error("a negative rate was taken")
	}
}

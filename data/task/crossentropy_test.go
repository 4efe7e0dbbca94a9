package task

import (
	"math"
	"testing"
)

// TestCrossEntropy holds the loss to its definition, where a naive sum of
// exponentials would overflow, too.
func TestCrossEntropy(t *testing.T) {
	for _, x := range []struct {
		scores []float32
		class  int
		want   float64
	}{
		{[]float32{0, 0, 0, 0}, 2, math.Log(4)},
		{[]float32{1, 2}, 0, math.Log(1 + math.E)},
		{[]float32{1, 2}, 1, math.Log(1 + 1/math.E)},
		{[]float32{1000, 0}, 0, 0},
		{[]float32{1000, 0}, 1, 1000},
		{[]float32{-3e38, -3e38}, 0, math.Log(2)},
		{[]float32{7}, 0, 0},
	} {
		if got := CrossEntropy(x.scores, x.class); math.Abs(got-x.want) > 1e-12*(1+x.want) || got < 0 {
			t.Errorf("CrossEntropy(%v, %d) = %v, want %v", x.scores, x.class, got, x.want)
		}
	}
	if got := CrossEntropy([]float32{0, float32(math.NaN())}, 0); !math.IsNaN(got) {
		t.Errorf("of a NaN: %v", got)
	}
}

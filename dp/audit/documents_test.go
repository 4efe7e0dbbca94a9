package audit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Of 1,000 audits of what is exactly 1-private (randomized response by documents) no more err
// than the level of 2 % says: more than 40 do once in 10^4. Scores that know nothing show
// nothing, and ones that know all show nearly the most.
func TestDocuments(t *testing.T) {
	const epsilon, level, canaries, trials = 1.0, 0.02, 200, 1000
	rng := rand.New(rand.NewPCG(3, 3))
	wrong, sum := 0, 0.0
	in, scores, all := make([]bool, canaries), make([]float64, canaries), make([]float64, canaries)
	for trial := range trials {
		for i := range in {
			in[i] = rng.IntN(2) == 0
			all[i] = 0
			if in[i] {
				all[i] = 1
			}
			scores[i] = all[i] // which are equal among those who say the same
			if rng.Float64() > 1/(1+math.Exp(-epsilon)) {
				scores[i] = 1 - all[i]
			}
		}
		b, err := Documents("response", scores, in, 0, level, uint64(trial))
		if err != nil {
			t.Fatal(err)
		}
		if sum += b.Epsilon / trials; b.Epsilon > epsilon {
			wrong++
		}
	}
	if wrong > 40 || sum < 0.3 {
		t.Errorf("%d of %d bounds are above the truth, their mean is %.2f of %v", wrong, trials, sum, epsilon)
	}
	sure, err := Documents("all", all, in, 1e-6, level, 1)
	if err != nil || sure.Epsilon < 2 || sure.Epsilon > sure.Most || sure.Best.Right < sure.Best.In+sure.Best.Out-30 {
		t.Errorf("all is known: %+v, %v", sure, err)
	}
	// In the files' order members come first: that equal scores would be guessed by it is a leak.
	for i := range in {
		in[i], scores[i] = i >= canaries/2, 0
	}
	if none, err := Documents("none", scores, in, 1e-6, level, 1); err != nil || none.Epsilon != 0 {
		t.Errorf("nothing is known: %+v, %v", none, err)
	}
	if _, err := Documents("few", scores[:3], in[:3], 0, level, 1); err == nil {
		t.Error("three canaries were taken")
	}
	if _, err := Documents("NaN", []float64{math.NaN(), 1, 1, 1, 1, 1, 1, 1, 1, 1}, in[:10], 0, level, 1); err == nil {
		t.Error("a canary without a score was taken")
	}
}

package audit

import (
	"fmt"
	"math"
)

// PValue is the largest probability of having v or more of r guesses right, among m canaries that
// are each in or out by a fair coin, if the job is (epsilon, delta) private (Steinke, Nasr,
// Jagielski 2023, theorem 5.2 and appendix D):
//
//	P[W >= v] + 2*m*delta*max_i P[v > W >= v-i]/i,  W ~ Bin(r, 1/(1+exp(-epsilon))).
//
// Which r canaries are guessed may depend on everything that was seen.
func PValue(m, r, v int, epsilon, delta float64) float64 {
	if v <= 0 {
		return 1
	}
	right, wrong := -math.Log1p(math.Exp(-epsilon)), -epsilon-math.Log1p(math.Exp(-epsilon)) // logarithms
	pmf := binomial(r, right, wrong)
	beta, alpha, below := 0.0, 0.0, 0.0
	for w := r; w >= v; w-- { // the smallest first
		beta += pmf[w]
	}
	for i := 1; i <= v; i++ {
		below += pmf[v-i]
		alpha = max(alpha, below/float64(i))
	}
	return min(1, beta+2*float64(m)*delta*alpha)
}

// binomial is the distribution of the number of successes in n trials; hit and miss
// are the logarithms of their probabilities.
func binomial(n int, hit, miss float64) []float64 {
	pmf := make([]float64, n+1)
	whole, _ := math.Lgamma(float64(n + 1))
	for k := range pmf {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		log := whole - a - b
		if k > 0 {
			log += float64(k) * hit
		}
		if k < n {
			log += float64(n-k) * miss
		}
		pmf[k] = math.Exp(log)
	}
	return pmf
}

// maxEpsilon is beyond what any number of canaries can show.
const maxEpsilon = 64

// LowerBound returns an epsilon that the job, at this delta, does not keep: it exceeds the true one
// with probability at most level. v of r guesses among m canaries were right.
func LowerBound(m, r, v int, delta, level float64) (float64, error) {
	switch {
	case v < 0 || v > r || r > m || m < 1:
		return 0, fmt.Errorf("audit: %d right of %d guesses among %d canaries: want 0 <= right <= guesses <= canaries", v, r, m)
	case !(delta >= 0 && delta < 1):
		return 0, fmt.Errorf("audit: delta is %v, must be in [0, 1)", delta)
	case !(level > 0 && level < 1):
		return 0, fmt.Errorf("audit: level is %v, must be in (0, 1)", level)
	}
	low, high := 0.0, float64(maxEpsilon)
	if PValue(m, r, v, low, delta) >= level {
		return 0, nil
	}
	for high-low > 1e-6 { // the p-value grows with epsilon
		if mid := (low + high) / 2; PValue(m, r, v, mid, delta) < level {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

package dp

import "math"

// Hypergeometric is the probability of k marked ones among n drawn, without putting back, of a
// number of which so many are marked; to a relative error of about 1e-9.
func Hypergeometric(of, marked, n, k int) float64 {
	return math.Exp(logChoose(marked, k) + logChoose(of-marked, n-k) - logChoose(of, n))
}

// logChoose is the logarithm of the number of ways to choose k of n, -Inf if there is none.
func logChoose(n, k int) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
	return lg(n) - lg(k) - lg(n-k)
}

// BinomialTail is P[Binomial(n, p) >= k], to a relative error of about 1e-9 where it is
// small.
func BinomialTail(n int, p float64, k int) float64 {
	switch {
	case k <= 0:
		return 1
	case k > n || p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	return binomialBelow(n, 1-p, n-k+1)
}

// binomialBelow is P[Binomial(n, p) < k], for p in (0, 1).
func binomialBelow(n int, p float64, k int) float64 {
	if k > n {
		return 1
	}
	if float64(k-1) > p*float64(n) {
		return 1 - binomialBelow(n, 1-p, n-k+1) // the largest term is among those summed here or there
	}
	// From the largest term downwards, each from the one above it.
	sum, term, odds := 0.0, math.Exp(logBinomial(n, k-1, p)), (1-p)/p
	for i := k - 1; i >= 0; i-- {
		sum += term
		next := term * float64(i) / float64(n-i+1) * odds
		if next < term && next < 1e-18*sum { // they only fall from here
			break
		}
		term = next
	}
	return min(1, sum)
}

// logBinomial is log P[Binomial(n, p) = k].
func logBinomial(n, k int, p float64) float64 {
	if p <= 0 || p >= 1 {
		if p <= 0 && k == 0 || p >= 1 && k == n {
			return 0
		}
		return math.Inf(-1)
	}
	return logChoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
}

package tail

import (
	"math/big"
	"math/bits"
	"testing"
)

// TestTailsBruteForce holds the tails against a count of all outcomes.
func TestTailsBruteForce(t *testing.T) {
	const n = 10
	for _, p := range []*big.Rat{big.NewRat(0, 1), big.NewRat(3, 7), big.NewRat(1, 1)} {
		bruteBinomial(t, n, p)
	}
	// All 6-subsets of 12 devices, 5 marked.
	for k := -1; k <= 7; k++ {
		hit, all := int64(0), int64(0)
		for subset := range 1 << 12 {
			if bits.OnesCount(uint(subset)) != 6 {
				continue
			}
			all++
			if bits.OnesCount(uint(subset)&0x1f) >= k {
				hit++
			}
		}
		x := Hypergeometric(12, 5, 6, k)
		if got := new(big.Rat).SetFrac(x.Num, x.Den); got.Cmp(big.NewRat(hit, all)) != 0 {
			t.Errorf("hypergeometric >=%d: %v, want %d/%d", k, got, hit, all)
		}
	}
}

func bruteBinomial(t *testing.T, n int, p *big.Rat) {
	t.Helper()
	q := new(big.Rat).Sub(big.NewRat(1, 1), p)
	for k := -1; k <= n+2; k++ {
		want := new(big.Rat)
		for outcome := range 1 << n {
			prob, ones := big.NewRat(1, 1), 0
			for i := range n {
				if outcome>>i&1 == 1 {
					prob.Mul(prob, p)
					ones++
				} else {
					prob.Mul(prob, q)
				}
			}
			if ones >= k {
				want.Add(want, prob)
			}
		}
		x := Binomial(n, p, k)
		if got := new(big.Rat).SetFrac(x.Num, x.Den); got.Cmp(want) != 0 {
			t.Errorf("P[Bin(%d,%v)>=%d] = %v, want %v", n, p, k, got, want)
		}
	}
}

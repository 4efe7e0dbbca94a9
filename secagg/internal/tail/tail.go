// Package tail computes exactly how likely a shard of secure aggregation is broken: how many of its members are corrupted,
// and how many that takes.
package tail

import (
	"math"
	"math/big"
)

// Tails are computed with integers: numerator and denominator are exact, and
// only the logarithm at the end is rounded (to a relative error below 2^-50, as
// math.Log2 of a 53-bit mantissa plus an integer exponent).

// A Tail is the exact probability num/den.
type Tail struct{ Num, Den *big.Int }

// binomialTails are P[Bin(n, p) >= k] for k = 0..n+1, over one denominator.
func binomialTails(n int, p *big.Rat) (num []*big.Int, den *big.Int) {
	a, m := p.Num(), p.Denom()
	b := new(big.Int).Sub(m, a)
	pow := []*big.Int{big.NewInt(1)} // of 1-p's numerator
	for i := range n {
		pow = append(pow, new(big.Int).Mul(pow[i], b))
	}
	num = make([]*big.Int, n+2)
	num[n+1] = new(big.Int)
	// From the top: C(n,i) * a^i * b^(n-i), the first two factors kept up.
	choose, rise := big.NewInt(1), new(big.Int).Exp(a, big.NewInt(int64(n)), nil)
	for i := n; i >= 0; i-- {
		term := new(big.Int).Mul(choose, rise)
		num[i] = term.Mul(term, pow[n-i]).Add(term, num[i+1])
		choose.Mul(choose, big.NewInt(int64(i))).Quo(choose, big.NewInt(int64(n-i+1)))
		if a.Sign() != 0 {
			rise.Quo(rise, a)
		} else if i == 1 {
			rise.SetInt64(1) // 0^0
		}
	}
	return num, new(big.Int).Exp(m, big.NewInt(int64(n)), nil)
}

// Binomial is P[Bin(n, p) >= k].
func Binomial(n int, p *big.Rat, k int) Tail {
	return BinomialFunc(n, p)(k)
}

func BinomialFunc(n int, p *big.Rat) func(k int) Tail {
	num, den := binomialTails(n, p)
	return func(k int) Tail { return Tail{num[min(max(k, 0), n+1)], den} }
}

// Hypergeometric is P[X >= k], X the marked among n drawn without
// replacement from population, marked of which are marked.
func Hypergeometric(population, marked, n, k int) Tail {
	num, term := new(big.Int), new(big.Int)
	for i := max(k, 0); i <= min(n, marked); i++ {
		if n-i > population-marked {
			continue
		}
		term.Binomial(int64(marked), int64(i))
		term.Mul(term, new(big.Int).Binomial(int64(population-marked), int64(n-i)))
		num.Add(num, term)
	}
	return Tail{num, new(big.Int).Binomial(int64(population), int64(n))}
}

// AtMost reports, exactly, whether the probability is at most 2^-bits.
func (t Tail) AtMost(bits int) bool {
	return new(big.Int).Lsh(t.Num, uint(bits)).Cmp(t.Den) <= 0
}

// Log2 is -Inf for an impossible event.
func (t Tail) Log2() float64 {
	if t.Num.Sign() == 0 {
		return math.Inf(-1)
	}
	return log2Int(t.Num) - log2Int(t.Den)
}

func log2Int(x *big.Int) float64 {
	shift := max(x.BitLen()-64, 0)
	m := new(big.Int).Rsh(x, uint(shift))
	return math.Log2(float64(m.Uint64())) + float64(shift)
}

// BreachCount is the least number of corrupted members that breaks a shard of n
// with threshold t.
//
// A server that deviates can tell some honest devices that v survived and the
// others that v dropped. It needs t signatures for each story. Corrupted members
// sign both, honest ones one: 2t <= (n-c)+2c = n+c, so c >= 2t-n. A server that
// follows the protocol needs c >= t shares of its own.
func BreachCount(n, t int, semiHonest bool) int {
	if semiHonest {
		return t
	}
	return max(2*t-n, 0)
}

// LeastThreshold is the least sensible t: a majority, so that no two disjoint
// sets of t exist. If the server is trusted to follow the protocol a third, so
// that no sum covers only a handful of a large shard.
func LeastThreshold(n int, semiHonest bool) int {
	if semiHonest {
		return max(2, (n+2)/3)
	}
	return n/2 + 1
}

// ChooseThreshold is the least t with breach probability at most 2^-bits, given
// the tail of the number of corrupted members.
func ChooseThreshold(n int, semiHonest bool, bits int, corruptedAtLeast func(c int) Tail) (int, bool) {
	for t := LeastThreshold(n, semiHonest); t <= n; t++ {
		if corruptedAtLeast(BreachCount(n, t, semiHonest)).AtMost(bits) {
			return t, true
		}
	}
	return 0, false
}

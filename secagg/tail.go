package secagg

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// Tails are computed with integers: numerator and denominator are exact, and
// only the logarithm at the end is rounded (to a relative error below 2^-50, as
// math.Log2 of a 53-bit mantissa plus an integer exponent).

// A tail is the exact probability num/den.
type tail struct{ num, den *big.Int }

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

// binomialTail is P[Bin(n, p) >= k].
func binomialTail(n int, p *big.Rat, k int) tail {
	return binomialTailFunc(n, p)(k)
}

func binomialTailFunc(n int, p *big.Rat) func(k int) tail {
	num, den := binomialTails(n, p)
	return func(k int) tail { return tail{num[min(max(k, 0), n+1)], den} }
}

// hypergeometricTail is P[X >= k], X the marked among n drawn without
// replacement from population, marked of which are marked.
func hypergeometricTail(population, marked, n, k int) tail {
	num, term := new(big.Int), new(big.Int)
	for i := max(k, 0); i <= min(n, marked); i++ {
		if n-i > population-marked {
			continue
		}
		term.Binomial(int64(marked), int64(i))
		term.Mul(term, new(big.Int).Binomial(int64(population-marked), int64(n-i)))
		num.Add(num, term)
	}
	return tail{num, new(big.Int).Binomial(int64(population), int64(n))}
}

// atMost reports, exactly, whether the probability is at most 2^-bits.
func (t tail) atMost(bits int) bool {
	return new(big.Int).Lsh(t.num, uint(bits)).Cmp(t.den) <= 0
}

// log2 is -Inf for an impossible event.
func (t tail) log2() float64 {
	if t.num.Sign() == 0 {
		return math.Inf(-1)
	}
	return log2Int(t.num) - log2Int(t.den)
}

func log2Int(x *big.Int) float64 {
	shift := max(x.BitLen()-64, 0)
	m := new(big.Int).Rsh(x, uint(shift))
	return math.Log2(float64(m.Uint64())) + float64(shift)
}

// decimal is the exact rational that a float64's shortest decimal form denotes:
// 0.05 is 1/20.
func decimal(what string, p float64) (*big.Rat, error) {
	if !(p >= 0 && p <= 1) {
		return nil, fmt.Errorf("%w: %s %v not in 0..1", ErrConfig, what, p)
	}
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(p, 'g', -1, 64))
	if !ok {
		return nil, fmt.Errorf("%w: %s %v", ErrConfig, what, p)
	}
	return r, nil
}

// breachCount is the least number of corrupted members that breaks a shard of n
// with threshold t.
//
// A server that deviates can tell some honest devices that v survived and the
// others that v dropped. It needs t signatures for each story. Corrupted members
// sign both, honest ones one: 2t <= (n-c)+2c = n+c, so c >= 2t-n. A server that
// follows the protocol needs c >= t shares of its own.
func breachCount(n, t int, semiHonest bool) int {
	if semiHonest {
		return t
	}
	return max(2*t-n, 0)
}

// leastThreshold is the least sensible t: a majority, so that no two disjoint
// sets of t exist. If the server is trusted to follow the protocol a third, so
// that no sum covers only a handful of a large shard.
func leastThreshold(n int, semiHonest bool) int {
	if semiHonest {
		return max(2, (n+2)/3)
	}
	return n/2 + 1
}

// chooseThreshold is the least t with breach probability at most 2^-bits, given
// the tail of the number of corrupted members.
func chooseThreshold(n int, semiHonest bool, bits int, corruptedAtLeast func(c int) tail) (int, bool) {
	for t := leastThreshold(n, semiHonest); t <= n; t++ {
		if corruptedAtLeast(breachCount(n, t, semiHonest)).atMost(bits) {
			return t, true
		}
	}
	return 0, false
}

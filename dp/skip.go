package dp

import (
	"fmt"
	"io"
	"math/big"
	"math/bits"
)

// Sparse is [Numbered] for populations so large that even their coins take too long: it
// takes time in the number of members who are in, and reads other randomness than Numbered
// does, so that the two draw other cohorts from one stream. The law is the same: every
// member is in with probability exactly q, independently of all others.
//
// Why it is exact. Coins are flipped in the order of the members. The number G of those
// passed over before the next who is in has P[G = g] = (1-q)^g q, whatever came before, so
// that drawing these gaps one after the other until they pass n is drawing the coins. With
// L = 2^k a gap is G = L*D + M, where D and M are independent: (1-q)^(L*d+m) q is
// ((1-q)^L)^d times (1-q)^m, up to factors that know neither d nor m (Bringmann and
// Friedrich 2013). D is therefore the number of heads before the first tail of coins that
// fall heads with probability (1-q)^L, and M is drawn by rejection: a uniform number below
// L, of k random bits, is kept with probability (1-q)^m. Both need nothing but coins of
// probability (1-q)^m for a whole number m, and these are exact (powerCoin). No float takes
// part: q is the dyadic rational that its float64 is.
//
// How long it takes. With k such that 1/2 < q*L <= 1 a tail comes after less than three
// coins on average and a number below L is kept at least once in four times.
func Sparse(n int) func(q float64, rnd io.Reader) ([]int, Certificate, error) {
	return func(q float64, rnd io.Reader) ([]int, Certificate, error) {
		limit, cert, err := beginDraw(n, q, "sparse", rnd)
		if err != nil {
			return nil, cert, err
		}
		commit := newCommitment(cert.Nonce)
		var who []int
		skip := newSkips(new(big.Int).SetBytes(limit[:]), rnd)
		for at := 0; ; at++ {
			gap, err := skip.gap(n - at)
			if err != nil {
				return nil, cert, fmt.Errorf("dp: reading the coins of %d members: %w: %w", n, ErrEntropy, err)
			}
			if at += gap; at >= n {
				break
			}
			who = append(who, at)
			commitPlace(commit, at)
		}
		cert.Commitment = [32]byte(commit.Sum(nil))
		return who, cert, nil
	}
}

// coinBits is how many bits of a uniform real, and of a power, are looked at first.
const coinBits = 128

// skips draws gaps.
type skips struct {
	rnd  io.Reader
	miss *big.Int // (1-q)*2^128, exact
	k    uint     // 2^k: the largest power of two that is at most 1/q
}

// newSkips takes q*2^128, which is whole, within 1..2^128.
func newSkips(q *big.Int, rnd io.Reader) *skips {
	one := new(big.Int).Lsh(big.NewInt(1), coinBits)
	// 2^k <= 1/q < 2^(k+1): q*2^128 has 128-k bits, or one more where q is 2^-k.
	k := coinBits - uint(q.BitLen())
	if q.TrailingZeroBits() == uint(q.BitLen()-1) {
		k++
	}
	return &skips{rnd: rnd, miss: one.Sub(one, q), k: min(k, 62)}
}

// gap draws how many members are passed over; left or more where no more than so many are
// left.
func (s *skips) gap(left int) (int, error) {
	gap := uint64(0)
	for {
		heads, err := s.powerCoin(1 << s.k)
		if err != nil {
			return 0, err
		}
		if !heads {
			break
		}
		if gap += 1 << s.k; gap >= uint64(left) {
			return left, nil
		}
	}
	for {
		m, err := s.random(int(s.k))
		if err != nil {
			return 0, err
		}
		kept, err := s.powerCoin(m.Uint64())
		if err != nil {
			return 0, err
		}
		if kept {
			return int(min(gap+m.Uint64(), uint64(left))), nil
		}
	}
}

// powerCoin falls heads with probability exactly (1-q)^m: it asks whether a uniform real in
// [0, 1) lies below that power. Of both only so many bits are known at a time, of the power
// a lower and an upper bound in whole numbers, each product rounded down and up. Where the
// bits decide, all further ones would decide alike; where they do not, twice as many are
// looked at. That they never do has probability zero, for the bounds meet.
func (s *skips) powerCoin(m uint64) (bool, error) {
	u, err := s.random(coinBits)
	if err != nil {
		return false, err
	}
	for precision := coinBits; ; precision *= 2 {
		low, high := s.power(m, uint(precision))
		switch next := new(big.Int).Add(u, big.NewInt(1)); {
		case next.Cmp(low) <= 0: // the real lies in [u, u+1)
			return true, nil
		case u.Cmp(high) >= 0:
			return false, nil
		}
		more, err := s.random(precision)
		if err != nil {
			return false, err
		}
		u.Or(u.Lsh(u, uint(precision)), more)
	}
}

// power bounds (1-q)^m * 2^precision from below and above, by squaring.
func (s *skips) power(m uint64, precision uint) (low, high *big.Int) {
	factor := new(big.Int).Lsh(s.miss, precision-coinBits)
	low = new(big.Int).Lsh(big.NewInt(1), precision)
	high = new(big.Int).Set(low)
	up := new(big.Int).Sub(low, big.NewInt(1))
	for i := bits.Len64(m) - 1; i >= 0; i-- {
		low.Rsh(low.Mul(low, low), precision)
		high.Rsh(high.Add(high.Mul(high, high), up), precision)
		if m>>i&1 == 1 {
			low.Rsh(low.Mul(low, factor), precision)
			high.Rsh(high.Add(high.Mul(high, factor), up), precision)
		}
	}
	return low, high
}

// random reads a number of n random bits.
func (s *skips) random(n int) (*big.Int, error) {
	b := make([]byte, (n+7)/8)
	if _, err := io.ReadFull(s.rnd, b); err != nil {
		return nil, err
	}
	x := new(big.Int).SetBytes(b)
	clear(b)
	return x.Rsh(x, uint(8*len(b)-n)), nil
}

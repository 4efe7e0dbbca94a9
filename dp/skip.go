package dp

import (
	"encoding/binary"
	"io"
	"math/big"
	"math/bits"
)

// coinBits is how many bits of a uniform real, and of a power, are looked at first.
const coinBits = 128

// skips draws who is in of members of whom each is with probability exactly q, independently of
// all others: the law of a coin for each, in time of those who are in.
//
// Why it is exact. Flip the coins in the order of the members. The number G of those
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
type skips struct {
	rnd  io.Reader
	miss *big.Int // (1-q)*2^128, exact
	k    uint     // 2^k: the largest power of two that is at most 1/q, and 2^62
	// powers enclose (1-q)^(2^i) for i up to k.
	powers []enclosure
	all    bool // q is 1
	buf    [coinBits / 8]byte
}

// newSkips takes q*2^128, which is whole, within 1..2^128.
func newSkips(q *big.Int, rnd io.Reader) *skips {
	one := new(big.Int).Lsh(big.NewInt(1), coinBits)
	// 2^k <= 1/q < 2^(k+1): q*2^128 has 128-k bits, or one more where q is 2^-k.
	k := coinBits - uint(q.BitLen())
	if q.TrailingZeroBits() == uint(q.BitLen()-1) {
		k++
	}
	s := &skips{rnd: rnd, miss: one.Sub(one, q), k: min(k, 62)}
	s.all = s.miss.Sign() == 0
	if !s.all {
		s.powers = make([]enclosure, s.k+1)
		s.powers[0] = around(s.miss)
		for i := range s.k {
			s.powers[i+1] = s.powers[i].times(s.powers[i])
		}
	}
	return s
}

// draw is who is in of n members, ascending.
func (s *skips) draw(n int) (who []int, err error) {
	defer clear(s.buf[:])
	for at := 0; ; at++ {
		if !s.all {
			gap, err := s.gap(n - at)
			if err != nil {
				return nil, err
			}
			at += gap
		}
		if at >= n {
			return who, nil
		}
		who = append(who, at)
	}
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
		x, err := s.random(int(s.k))
		if err != nil {
			return 0, err
		}
		m := x.lo
		kept, err := s.powerCoin(m)
		if err != nil {
			return 0, err
		}
		if kept {
			return int(min(gap+m, uint64(left))), nil
		}
	}
}

// powerCoin falls heads with probability exactly (1-q)^m, for an m of at most 2^k: it asks
// whether a uniform real in [0, 1) is below that power. Of both only 128 bits are looked at
// first, of the power a lower and an upper bound. Where these decide, all further bits would
// decide alike.
func (s *skips) powerCoin(m uint64) (heads bool, err error) {
	u, err := s.random(coinBits)
	if err != nil {
		return false, err
	}
	power := everything
	for i := uint(0); m>>i > 0; i++ {
		if m>>i&1 == 1 {
			power = power.times(s.powers[i])
		}
	}
	switch { // the real is in [u, u+1)
	case u.below(power.low):
		return true, nil
	case power.high.below(u):
		return false, nil
	}
	return s.precisely(m, u)
}

// precisely decides a power's coin whose first bits u do not: twice as many are looked at each
// time. That they never decide has probability zero, for the bounds meet.
func (s *skips) precisely(m uint64, first uint128) (bool, error) {
	u := first.big()
	for precision := coinBits; ; precision *= 2 {
		low, high := s.power(m, uint(precision))
		switch next := new(big.Int).Add(u, big.NewInt(1)); {
		case next.Cmp(low) <= 0:
			return true, nil
		case u.Cmp(high) >= 0:
			return false, nil
		}
		for range precision / coinBits {
			more, err := s.random(coinBits)
			if err != nil {
				return false, err
			}
			u.Or(u.Lsh(u, coinBits), more.big())
		}
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

// random reads a number of n random bits, at most 128.
func (s *skips) random(n int) (uint128, error) {
	b := s.buf[:(n+7)/8]
	if _, err := io.ReadFull(s.rnd, b); err != nil {
		return uint128{}, err
	}
	var wide [coinBits / 8]byte
	copy(wide[len(wide)-len(b):], b)
	x := uint128{binary.BigEndian.Uint64(wide[:8]), binary.BigEndian.Uint64(wide[8:])}
	over := uint(8*len(b) - n) // under 8
	return uint128{x.hi >> over, x.lo>>over | x.hi<<(64-over)}, nil
}

package dp

import (
	"encoding/binary"
	"math/big"
	"math/bits"
)

// uint128 is a whole number.
type uint128 struct{ hi, lo uint64 }

func (x uint128) below(y uint128) bool { return x.hi < y.hi || x.hi == y.hi && x.lo < y.lo }

func (x uint128) big() *big.Int {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], x.hi)
	binary.BigEndian.PutUint64(b[8:], x.lo)
	return new(big.Int).SetBytes(b[:])
}

// enclosure holds a real p of [0, 1]: low <= p*2^128 <= high+1. The one that the upper bound lacks
// lets it be 1, and products of enclosures be enclosures without a carry.
type enclosure struct{ low, high uint128 }

// everything is 1: a product of no factor.
var everything = enclosure{uint128{^uint64(0), ^uint64(0)}, uint128{^uint64(0), ^uint64(0)}}

// around is the enclosure of x/2^128, for x within 1..2^128-1.
func around(x *big.Int) enclosure {
	var b [16]byte
	x.FillBytes(b[:])
	low := uint128{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
	high := uint128{low.hi, low.lo - 1}
	if low.lo == 0 {
		high.hi--
	}
	return enclosure{low, high}
}

// times encloses a product. Of the lower ones it is the product's upper half. Of the upper ones
// (x+1)(y+1)/2^128 is at most 1 more than the upper half of xy + x + y, which is below 2^256.
func (b enclosure) times(c enclosure) enclosure {
	none := uint128{}
	return enclosure{upperHalf(b.low, c.low, none, none), upperHalf(b.high, c.high, b.high, c.high)}
}

// upperHalf is the whole part of (xy + a + b)/2^128, where that is below 2^128.
func upperHalf(x, y, a, b uint128) uint128 {
	h0, w0 := bits.Mul64(x.lo, y.lo)
	h1, l1 := bits.Mul64(x.lo, y.hi)
	h2, l2 := bits.Mul64(x.hi, y.lo)
	h3, l3 := bits.Mul64(x.hi, y.hi)
	w1, c1 := bits.Add64(h0, l1, 0)
	w2, c2 := bits.Add64(h1, l3, c1)
	w3 := h3 + c2
	var c uint64
	w1, c = bits.Add64(w1, l2, 0)
	w2, c = bits.Add64(w2, h2, c)
	w3 += c
	for _, z := range [...]uint128{a, b} {
		w0, c = bits.Add64(w0, z.lo, 0)
		w1, c = bits.Add64(w1, z.hi, c)
		w2, c = bits.Add64(w2, 0, c)
		w3 += c
	}
	return uint128{w3, w2}
}

package vrf

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// The plain twin: RFC 9381's verification in whole numbers and affine points, as the
// document has it, and nothing of edwards25519's.

func number(text string) *big.Int { n, _ := new(big.Int).SetString(text, 10); return n }

var (
	prime = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	order = new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 252), number("27742317777372353535851937790883648493"))
	plusD = mod(new(big.Int).Mul(big.NewInt(-121665), new(big.Int).ModInverse(big.NewInt(121666), prime)))
	base  = affine{
		number("15112221349535400772501151409588531511454012693041857206046113283949847762202"),
		number("46316835694926478169428394003475163141307993866256225615783033603165251855960"),
	}
	neutral = affine{big.NewInt(0), big.NewInt(1)}
)

type affine struct{ x, y *big.Int }

func mod(n *big.Int) *big.Int    { return n.Mod(n, prime) }
func mul(a, b *big.Int) *big.Int { return mod(new(big.Int).Mul(a, b)) }

func (p affine) add(q affine) affine {
	k := mul(mul(plusD, mul(p.x, q.x)), mul(p.y, q.y))
	x := mod(new(big.Int).Add(mul(p.x, q.y), mul(p.y, q.x)))
	y := mod(new(big.Int).Add(mul(p.y, q.y), mul(p.x, q.x)))
	one := big.NewInt(1)
	return affine{
		mul(x, new(big.Int).ModInverse(mod(new(big.Int).Add(one, k)), prime)),
		mul(y, new(big.Int).ModInverse(mod(new(big.Int).Sub(one, k)), prime)),
	}
}

func (p affine) times(n *big.Int) affine {
	out := neutral
	for i := n.BitLen() - 1; i >= 0; i-- {
		if out = out.add(out); n.Bit(i) == 1 {
			out = out.add(p)
		}
	}
	return out
}

func (p affine) negative() affine { return affine{mod(new(big.Int).Neg(p.x)), p.y} }

func (p affine) neutral() bool { return p.x.Sign() == 0 && p.y.Cmp(neutral.y) == 0 }

func (p affine) bytes() []byte {
	b := p.y.FillBytes(make([]byte, 32))
	slices.Reverse(b)
	b[31] |= byte(p.x.Bit(0) << 7)
	return b
}

func little(b []byte) *big.Int {
	b = slices.Clone(b)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b)
}

// plainPoint decodes as RFC 8032, 5.1.3.
func plainPoint(b []byte) (affine, bool) {
	y := little(b)
	sign := y.Bit(255)
	y.SetBit(y, 255, 0)
	if y.Cmp(prime) >= 0 {
		return affine{}, false
	}
	square := mul(y, y)
	v := mod(new(big.Int).Add(mul(plusD, square), big.NewInt(1)))
	u := mod(new(big.Int).Sub(square, big.NewInt(1)))
	x := new(big.Int).ModSqrt(mul(u, new(big.Int).ModInverse(v, prime)), prime)
	if x == nil || x.Sign() == 0 && sign == 1 {
		return affine{}, false
	}
	if x.Bit(0) != sign {
		x.Sub(prime, x)
	}
	return affine{x, y}, true
}

func plainVerify(public, input, proof []byte) (output []byte, ok bool) {
	y, ok := plainPoint(public)
	if !ok || y.times(big.NewInt(8)).neutral() {
		return nil, false
	}
	gamma, ok := plainPoint(proof[:32])
	c, s := little(proof[32:48]), little(proof[48:])
	if !ok || s.Cmp(order) >= 0 {
		return nil, false
	}
	var h affine
	for n := 0; ; n++ {
		sum := sha512.Sum512(slices.Concat([]byte{3, 1}, public, input, []byte{byte(n), 0}))
		if p, ok := plainPoint(sum[:32]); ok {
			if h = p.times(big.NewInt(8)); !h.neutral() {
				break
			}
		}
	}
	u := base.times(s).add(y.times(c).negative())
	v := h.times(s).add(gamma.times(c).negative())
	again := sha512.Sum512(slices.Concat([]byte{3, 2}, public, h.bytes(), gamma.bytes(), u.bytes(), v.bytes(), []byte{0}))
	if !bytes.Equal(again[:16], proof[32:48]) {
		return nil, false
	}
	sum := sha512.Sum512(slices.Concat([]byte{3, 3}, gamma.times(big.NewInt(8)).bytes(), []byte{0}))
	return sum[:], true
}

// TestAgainstPlain: of random keys and inputs both say the same, also of proofs that were
// changed.
func TestAgainstPlain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	for n := range 12 {
		key, public := drawn(rnd)
		input := make([]byte, 11*n)
		for i := range input {
			input[i] = byte(rnd.Uint32())
		}
		proof, err := Prove(ed25519.PrivateKey(key), input)
		if err != nil {
			t.Fatal(err)
		}
		if n%3 == 2 {
			proof[rnd.IntN(ProofSize)] ^= 1 << rnd.IntN(8)
		}
		out, err := Verify(&public, input, &proof)
		want, ok := plainVerify(public[:], input, proof[:])
		if ok != (err == nil) || ok != (n%3 != 2) || ok && !bytes.Equal(out[:], want) {
			t.Errorf("%d: %v, twin %v", n, err, ok)
		}
	}
}

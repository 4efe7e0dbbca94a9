package secagg

import (
	"bytes"
	"crypto/sha512"
	"fmt"
	"io"

	"filippo.io/edwards25519"
)

// Which Ed25519 signatures are valid is decided here, once for every party of the
// protocol: by the equation with the cofactor, RFC 8032 section 5.1.7,
//
//	[8][S]B = [8]R + [8][k]A,  k = SHA-512(R || A || M) mod l,
//
// with S, R and A in their canonical encodings and A not of low order. The RFC
// allows leaving the 8 out, as crypto/ed25519 does; then a batch cannot decide as
// single checks do. A signature whose A or R has a part of order 2, 4 or 8 leaves a
// rest of low order in the equation, and in a random combination such rests vanish
// with a probability of up to 1/2: some devices of a shard would take a roster that
// others refuse. With the cofactor those rests are gone from both, and a batch
// accepts exactly what all its signatures deserve one by one, but for 2^-128 (see
// Chalkias, Garillot, Nikolaenko, "Taming the many EdDSAs", SSR 2020). What is
// given up: the holder of a key can make signatures on its statements that
// crypto/ed25519 would refuse; nobody else can, so nothing here hangs on it. All
// that crypto/ed25519 accepts under a canonical key that is not of low order is
// accepted.

// signed is one signature to check.
type signed struct {
	key       *[32]byte
	statement []byte
	sign      *[sigSize]byte
}

// equation is a signature's [S]B = R + [k]A, taken apart.
type equation struct {
	s, k *edwards25519.Scalar
	r, a *edwards25519.Point
}

// parse refuses what cannot be valid whatever the statement.
func (x signed) parse() (e equation, ok bool) {
	var err error
	r := (*[32]byte)(x.sign[:32])
	if !canonicalPoint(r) || !canonicalPoint(x.key) {
		return e, false
	}
	if e.s, err = edwards25519.NewScalar().SetCanonicalBytes(x.sign[32:]); err != nil {
		return e, false
	}
	if e.r, err = new(edwards25519.Point).SetBytes(r[:]); err != nil {
		return e, false
	}
	if e.a, err = new(edwards25519.Point).SetBytes(x.key[:]); err != nil || lowOrderPoint(e.a) {
		return e, false
	}
	h := sha512.New()
	h.Write(r[:])
	h.Write(x.key[:])
	h.Write(x.statement)
	if e.k, err = edwards25519.NewScalar().SetUniformBytes(h.Sum(nil)); err != nil {
		return e, false
	}
	return e, true
}

// verify checks one signature: the plain twin of verifyAll.
func verify(key, statement, sign []byte) bool {
	if len(key) != 32 || len(sign) != sigSize {
		return false
	}
	e, ok := signed{(*[32]byte)(key), statement, (*[sigSize]byte)(sign)}.parse()
	if !ok {
		return false
	}
	minus := new(edwards25519.Point).Negate(e.a)
	rest := new(edwards25519.Point).VarTimeDoubleScalarBaseMult(e.k, minus, e.s)
	return lowOrderPoint(rest.Subtract(rest, e.r))
}

// verifyAll returns the index of the first signature that verify refuses, or -1.
// It checks one random combination of all equations (Bellare, Garay, Rabin,
// EUROCRYPT 1998), with coefficients of 128 bits from rand that nobody can know
// who made the signatures; only if that fails are they checked one by one.
func verifyAll(rand io.Reader, all []signed) (bad int, err error) {
	sound, err := verifyBatch(rand, all)
	if err != nil {
		return 0, err
	}
	if !sound {
		for i, x := range all {
			if !verify(x.key[:], x.statement, x.sign[:]) {
				return i, nil
			}
		}
	}
	return -1, nil
}

// verifyBatch checks [8](sum z_i S_i)B = [8] sum (z_i R_i + z_i k_i A_i).
func verifyBatch(rand io.Reader, all []signed) (bool, error) {
	z := make([]byte, 16*len(all))
	if _, err := io.ReadFull(rand, z); err != nil {
		return false, fmt.Errorf("secagg: reading randomness: %w", err)
	}
	scalars := make([]*edwards25519.Scalar, 1, 1+2*len(all))
	points := make([]*edwards25519.Point, 1, 1+2*len(all))
	scalars[0], points[0] = edwards25519.NewScalar(), edwards25519.NewGeneratorPoint()
	byKey := make(map[[32]byte]int, len(all)) // an authority's signatures share a term
	for i, x := range all {
		e, ok := x.parse()
		if !ok {
			return false, nil
		}
		var wide [32]byte
		copy(wide[:], z[16*i:16*i+16])
		c, err := edwards25519.NewScalar().SetCanonicalBytes(wide[:])
		if err != nil {
			return false, err
		}
		scalars[0].MultiplyAdd(c, e.s, scalars[0])
		scalars, points = append(scalars, edwards25519.NewScalar().Negate(c)), append(points, e.r)
		e.k.Multiply(e.k, scalars[len(scalars)-1])
		if at, seen := byKey[*x.key]; seen {
			scalars[at].Add(scalars[at], e.k)
			continue
		}
		byKey[*x.key] = len(scalars)
		scalars, points = append(scalars, e.k), append(points, e.a)
	}
	// Everything here is public: variable time is right.
	return lowOrderPoint(new(edwards25519.Point).VarTimeMultiScalarMult(scalars, points)), nil
}

// lowOrderPoint reports whether [8]p is the identity.
func lowOrderPoint(p *edwards25519.Point) bool {
	return new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1
}

// canonicalPoint reports whether an encoding is the only one of its point that
// RFC 8032 section 5.1.3 decodes: y below p, and no sign where x = 0.
// edwards25519 is laxer.
func canonicalPoint(b *[32]byte) bool {
	y := *b
	y[31] &= 0x7f
	if y[31] == 0x7f && y[0] >= 0xed && bytes.Count(y[1:31], []byte{0xff}) == 30 {
		return false
	}
	return b[31] < 0x80 || y != one && y != minusOne
}

// The y-coordinates where x = 0.
var one, minusOne = [32]byte{0: 1}, fieldNear(0xec)

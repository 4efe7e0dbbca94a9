package vrf

import (
	"crypto/ed25519"
	"crypto/sha512"
	"crypto/subtle"
	"errors"
	"fmt"
	"math"

	"filippo.io/edwards25519"
)

// Sizes in bytes.
const (
	ProofSize  = 32 + challengeSize + 32
	OutputSize = sha512.Size

	challengeSize = 16
)

// ErrProof is a proof that does not verify: it is malformed, or of another key, input or output.
var ErrProof = errors.New("vrf: the proof does not hold")

// The bytes that separate the suite's hashes from each other (RFC 9381, 5.4 and 5.5).
const (
	suite       = 0x03
	frontEncode = 0x01
	frontProve  = 0x02
	frontOutput = 0x03
	back        = 0x00
)

// Prove draws with key for input, and returns the proof; Output returns the draw.
func Prove(key ed25519.PrivateKey, input []byte) (proof [ProofSize]byte, err error) {
	if len(key) != ed25519.PrivateKeySize {
		return proof, fmt.Errorf("vrf: key of %d bytes, %d expected", len(key), ed25519.PrivateKeySize)
	}
	secret := sha512.Sum512(key.Seed())
	defer clear(secret[:])
	x, err := edwards25519.NewScalar().SetBytesWithClamping(secret[:32])
	if err != nil {
		return proof, err
	}
	defer x.Set(edwards25519.NewScalar())
	public := (*[32]byte)(key[32:])
	h, err := encode(public, input)
	if err != nil {
		return proof, err
	}
	gamma := new(edwards25519.Point).ScalarMult(x, h)

	nonce := sha512.New()
	nonce.Write(secret[32:])
	nonce.Write(h.Bytes())
	wide := nonce.Sum(nil)
	defer clear(wide)
	k, err := edwards25519.NewScalar().SetUniformBytes(wide)
	if err != nil {
		return proof, err
	}
	defer k.Set(edwards25519.NewScalar())

	u := new(edwards25519.Point).ScalarBaseMult(k)
	v := new(edwards25519.Point).ScalarMult(k, h)
	c := challenge(public[:], h.Bytes(), gamma.Bytes(), u.Bytes(), v.Bytes())
	s, err := scalar(c)
	if err != nil {
		return proof, err
	}
	s.MultiplyAdd(s, x, k)
	copy(proof[:32], gamma.Bytes())
	copy(proof[32:], c[:])
	copy(proof[32+challengeSize:], s.Bytes())
	return proof, nil
}

// Verify returns what the holder of the public key has drawn for input, or wraps ErrProof.
// The key may be anybody's choice: one of low order, which would draw the same for every
// input, proves nothing.
func Verify(public *[32]byte, input []byte, proof *[ProofSize]byte) (output [OutputSize]byte, err error) {
	y, err := point(public[:])
	if err != nil {
		return output, fmt.Errorf("%w: public key: %w", ErrProof, err)
	}
	if lowOrder(y) {
		return output, fmt.Errorf("%w: public key of low order", ErrProof)
	}
	gamma, err := point(proof[:32])
	if err != nil {
		return output, fmt.Errorf("%w: %w", ErrProof, err)
	}
	c := [challengeSize]byte(proof[32:])
	minus, err := scalar(c)
	if err != nil {
		return output, fmt.Errorf("%w: %w", ErrProof, err)
	}
	minus.Negate(minus)
	s, err := edwards25519.NewScalar().SetCanonicalBytes(proof[32+challengeSize:])
	if err != nil {
		return output, fmt.Errorf("%w: %w", ErrProof, err)
	}
	h, err := encode(public, input)
	if err != nil {
		return output, err
	}
	// Everything here is public: variable time is right.
	u := new(edwards25519.Point).VarTimeDoubleScalarBaseMult(minus, y, s)
	v := new(edwards25519.Point).VarTimeMultiScalarMult([]*edwards25519.Scalar{s, minus}, []*edwards25519.Point{h, gamma})
	again := challenge(public[:], h.Bytes(), proof[:32], u.Bytes(), v.Bytes())
	if subtle.ConstantTimeCompare(c[:], again[:]) != 1 {
		return output, fmt.Errorf("%w: not for this key and input", ErrProof)
	}
	return hashed(gamma), nil
}

// Output returns the output of one's own proof. For others' proofs call Verify.
func Output(proof *[ProofSize]byte) (output [OutputSize]byte, err error) {
	gamma, err := point(proof[:32])
	if err != nil {
		return output, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return hashed(gamma), nil
}

// hashed is ECVRF_proof_to_hash (5.2).
func hashed(gamma *edwards25519.Point) [OutputSize]byte {
	b := append(make([]byte, 0, 35), suite, frontOutput)
	b = append(b, new(edwards25519.Point).MultByCofactor(gamma).Bytes()...)
	return sha512.Sum512(append(b, back))
}

// encode finds the input's point on the curve: of a hash the first that is one's encoding
// (5.4.1.1, with the public key as salt).
func encode(public *[32]byte, input []byte) (*edwards25519.Point, error) {
	b := append(make([]byte, 0, 36+len(input)), suite, frontEncode)
	b = append(append(b, public[:]...), input...)
	b = append(b, 0, back)
	// That none of 256 is one happens once in 2^256 inputs.
	for n := range math.MaxUint8 + 1 {
		b[len(b)-2] = byte(n)
		sum := sha512.Sum512(b)
		p, err := point(sum[:32])
		if err != nil {
			continue
		}
		if p.MultByCofactor(p); p.Equal(edwards25519.NewIdentityPoint()) == 0 {
			return p, nil
		}
	}
	return nil, errors.New("vrf: no point for this input")
}

// challenge is ECVRF_challenge_generation (5.4.3).
func challenge(points ...[]byte) [challengeSize]byte {
	b := append(make([]byte, 0, 3+32*len(points)), suite, frontProve)
	for _, p := range points {
		b = append(b, p...)
	}
	sum := sha512.Sum512(append(b, back))
	return [challengeSize]byte(sum[:])
}

func scalar(c [challengeSize]byte) (*edwards25519.Scalar, error) {
	var wide [32]byte
	copy(wide[:], c[:])
	return edwards25519.NewScalar().SetCanonicalBytes(wide[:])
}

// point decodes as RFC 8032 (5.1.3) does, which takes of each point one encoding; the
// library also takes those whose y is not below 2^255-19, and a sign of x = 0.
func point(b []byte) (*edwards25519.Point, error) {
	p, err := new(edwards25519.Point).SetBytes(b)
	if err != nil {
		return nil, err
	}
	if [32]byte(p.Bytes()) != [32]byte(b) {
		return nil, errors.New("vrf: not the one encoding of a point")
	}
	return p, nil
}

func lowOrder(p *edwards25519.Point) bool {
	return new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1
}

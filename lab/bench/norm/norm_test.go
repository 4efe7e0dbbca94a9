// Package norm measures what a proof that hides an update and bounds it costs a
// device, for 16,384 symbols of five bits: an update at rank 1..8 of the default base.
//
//	go test -bench . -benchtime 3x -cpu 1
//
// It is a module of its own, so that what it measures is no dependency of Starling.
package norm

import (
	"crypto/rand"
	"testing"

	"github.com/cloudflare/circl/vdaf/prio3/sumvec"
	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

const (
	symbols = 16384
	bits    = 5 // nf4's symbols lie in -12..12
)

// BenchmarkPrio3 is Prio3SumVec of draft-irtf-cfrg-vdaf-13, by circl: a vector is
// shared between two servers that do not collude, with a proof that every symbol is in
// its range. A bound of the norm (PINE, or Prio3's FixedPointBoundedL2VecSum) is
// this and two multiplications a symbol more.
func BenchmarkPrio3(b *testing.B) {
	v, err := sumvec.New(2, symbols, bits, 286, []byte("bench")) // chunks of sqrt(symbols*bits)
	if err != nil {
		b.Fatal(err)
	}
	x := make([]uint64, symbols)
	for i := range x {
		x[i] = uint64(i % 25)
	}
	params := v.Params()
	secret := make([]byte, params.RandSize())
	var nonce sumvec.Nonce
	var key sumvec.VerifyKey
	_, _ = rand.Read(secret)
	_, _ = rand.Read(key[:])
	var public sumvec.PublicShare
	var shares []sumvec.InputShare
	b.Run("device", func(b *testing.B) {
		for b.Loop() {
			if public, shares, err = v.Shard(x, &nonce, secret); err != nil {
				b.Fatal(err)
			}
		}
		sent := 0
		for _, s := range shares {
			enc, err := s.MarshalBinary()
			if err != nil {
				b.Fatal(err)
			}
			sent += len(enc)
		}
		b.ReportMetric(float64(sent), "B-sent")
	})
	b.Run("servers", func(b *testing.B) {
		if shares == nil {
			b.Skip("no shares")
		}
		for b.Loop() {
			var prep []sumvec.PrepShare
			for i, s := range shares {
				_, p, err := v.PrepInit(&key, &nonce, uint8(i), public, s)
				if err != nil {
					b.Fatal(err)
				}
				prep = append(prep, *p)
			}
			if _, err := v.PrepSharesToPrep(prep); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBulletproof is the multi-exponentiations alone of an aggregated range proof
// (Bünz et al. 2018) over one Pedersen commitment to the vector, as ACORN and Eiffel
// use it: the least that a prover does. With n = symbols*bits, padded to a power of
// two, these are: the commitment (symbols points), A and S (2n points each) and, in the
// rounds of the inner product argument, L and R of n points at first and half as many in
// each round after: 4n in all. Folding the generators, hashing and the polynomials come
// on top.
func BenchmarkBulletproof(b *testing.B) {
	n := 1
	for n < symbols*bits {
		n *= 2
	}
	scalars := make([]fr.Element, n)
	_, _, g, _ := bn254.Generators()
	at := new(bn254.G1Jac).FromAffine(&g)
	jac := make([]bn254.G1Jac, n)
	for i := range jac {
		at.AddMixed(&g)
		jac[i] = *at
		if _, err := scalars[i].SetRandom(); err != nil {
			b.Fatal(err)
		}
	}
	points := bn254.BatchJacobianToAffineG1(jac)
	exp := func(b *testing.B, n int) {
		var out bn254.G1Affine
		if _, err := out.MultiExp(points[:n], scalars[:n], ecc.MultiExpConfig{NbTasks: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("device", func(b *testing.B) {
		for b.Loop() {
			exp(b, symbols)
			for range 4 { // A and S
				exp(b, n)
			}
			for m := n; m >= 1; m /= 2 { // L and R, half of g and half of h each
				exp(b, m)
				exp(b, m)
			}
		}
		b.ReportMetric(float64(32*(3+2*17+2)), "B-sent")
	})
	b.Run("server", func(b *testing.B) { // one multi-exponentiation over both sets of generators
		for b.Loop() {
			exp(b, n)
			exp(b, n)
		}
	})
}

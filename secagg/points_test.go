package secagg

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"filippo.io/edwards25519"
)

// Commitments pass where every one of them decodes, whatever its encoding.
func TestPointsAreThoseThatDecode(t *testing.T) {
	rng := rand.New(rand.NewChaCha8([32]byte{1}))
	random := func() []byte {
		b := make([]byte, pointSize)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	// Honest, torsion, encodings that are not reduced, x = 0 with a sign, garbage.
	var some [][]byte
	for range 40 {
		s, err := edwards25519.NewScalar().SetUniformBytes(append(random(), random()...))
		if err != nil {
			t.Fatal(err)
		}
		some = append(some, new(edwards25519.Point).ScalarBaseMult(s).Bytes(), random())
	}
	for low := range 256 {
		for _, b := range [][32]byte{{0: byte(low)}, fieldNear(byte(low))} {
			some = append(some, bytes.Clone(b[:]))
			b[31] |= 0x80
			some = append(some, bytes.Clone(b[:]))
		}
	}
	var good, bad [][]byte
	for _, b := range some {
		_, err := newVerifier(b)
		if err == nil {
			good = append(good, b)
		} else {
			bad = append(bad, b)
		}
		if arePoints(b) != (err == nil) {
			t.Errorf("%x: %t, decoded with %v", b, err != nil, err)
		}
	}
	if len(good) < 300 || len(bad) < 300 {
		t.Fatalf("%d points, %d that are none", len(good), len(bad))
	}
	for n := range 70 {
		all := make([][]byte, n)
		for i := range all {
			all[i] = good[rng.IntN(len(good))]
		}
		if !arePoints(bytes.Join(all, nil)) {
			t.Errorf("%d points were refused", n)
		}
		// One that is none, then more: an even number of them is not a product of squares.
		for wrong := 1; wrong <= min(n, 4); wrong++ {
			for _, i := range rng.Perm(n)[:wrong] {
				all[i] = bad[rng.IntN(len(bad))]
			}
			if arePoints(bytes.Join(all, nil)) {
				t.Errorf("%d of %d are no points and passed", wrong, n)
			}
		}
	}
}

// BenchmarkPoints: what a device of a shard of 64 commits to, by both twins.
func BenchmarkPoints(b *testing.B) {
	const n = 90
	var all []byte
	p := edwards25519.NewGeneratorPoint()
	for range n {
		all = append(all, p.Add(p, edwards25519.NewGeneratorPoint()).Bytes()...)
	}
	b.Run("products", func(b *testing.B) {
		for b.Loop() {
			if !arePoints(all) {
				b.Fatal("points were refused")
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if _, err := newVerifier(all); err != nil {
				b.Fatal(err)
			}
		}
	})
}

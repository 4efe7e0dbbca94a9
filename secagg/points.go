package secagg

import (
	"crypto/rand"
	"encoding/binary"

	"filippo.io/edwards25519/field"
)

// Whether an encoding y is a point's needs no square root: x^2 = u/v with u = y^2-1
// and v = dy^2+1, and u/v is a square where w = u*v is one (v is never 0, as -1/d is
// no square). For many encodings it needs a few Legendre symbols only: of random
// products of the w. If all w are squares, so are all products; if any is not, each
// product is one with a probability of 1/2.

// symbols is how many products are looked at: a device whose commitments are no
// points passes once in 2^symbols times. It gains nothing by it, since anyone who reads
// a commitment decodes it: it could as well have dealt garbage.
const symbols = 24

// arePoints reports whether encodings are those of points, as edwards25519 decodes
// them: it is always right that they are, and wrong that they are not never, that they
// are once in 2^symbols times. newVerifier is its plain twin.
func arePoints(encodings []byte) bool {
	n := len(encodings) / pointSize
	if n == 0 {
		return true
	}
	chosen := make([]byte, 4*n+3*4)
	_, _ = rand.Read(chosen) // ends the program where the system has no randomness
	var products [symbols]field.Element
	var zero field.Element
	for s := range products {
		products[s].One()
	}
	for first := 0; first < n; first += 4 {
		// The products of all subsets of four.
		var of [16]field.Element
		of[0].One()
		for j := range 4 {
			var w field.Element
			w.One()
			if k := first + j; k < n {
				if residue(&w, encodings[k*pointSize:(k+1)*pointSize]); w.Equal(&zero) == 1 {
					w.One() // u = 0: a point with x = 0
				}
			}
			for t := range 1 << j {
				of[1<<j|t].Multiply(&of[t], &w)
			}
		}
		var in [4]uint32
		for j := range in {
			in[j] = binary.LittleEndian.Uint32(chosen[4*(first+j):])
		}
		for s := range products {
			t := in[0]>>s&1 | in[1]>>s&1<<1 | in[2]>>s&1<<2 | in[3]>>s&1<<3
			products[s].Multiply(&products[s], &of[t])
		}
	}
	one := new(field.Element).One()
	for s := range products {
		if _, square := new(field.Element).SqrtRatio(&products[s], one); square == 0 {
			return false
		}
	}
	return true
}

// residue sets w to u*v of an encoding.
func residue(w *field.Element, encoding []byte) {
	var y, one field.Element
	if _, err := y.SetBytes(encoding); err != nil {
		panic(err) // only for other lengths
	}
	one.One()
	y.Square(&y)
	w.Multiply(&y, curveD)
	w.Multiply(w.Add(w, &one), y.Subtract(&y, &one))
}

// curveD is d = -121665/121666 (RFC 8032 section 5.1).
var curveD = func() *field.Element {
	one := new(field.Element).One()
	a, b := new(field.Element).Mult32(one, 121665), new(field.Element).Mult32(one, 121666)
	return a.Multiply(a.Negate(a), b.Invert(b))
}()

package secagg

import "filippo.io/edwards25519/field"

// ladder is X25519 of RFC 7748, section 5: the Montgomery ladder over 255 bits
// in constant time, the scalar clamped. It is what the light build for browsers
// agrees on keys with; every other build has crypto/ecdh's, and a test holds
// the two against each other.
func ladder(dst, scalar, point *[32]byte) {
	e := *scalar
	e[0] &= 248
	e[31] = e[31]&127 | 64
	var x1, x2, z2, x3, z3, t0, t1 field.Element
	if _, err := x1.SetBytes(point[:]); err != nil {
		panic(err) // 32 bytes are an element
	}
	x2.One()
	z2.Zero()
	x3.Set(&x1)
	z3.One()
	swap := 0
	for pos := 254; pos >= 0; pos-- {
		bit := int(e[pos/8] >> (pos % 8) & 1)
		swap ^= bit
		x2.Swap(&x3, swap)
		z2.Swap(&z3, swap)
		swap = bit

		t0.Subtract(&x3, &z3) // D
		t1.Subtract(&x2, &z2) // B
		x2.Add(&x2, &z2)      // A
		z2.Add(&x3, &z3)      // C
		z3.Multiply(&t0, &x2) // DA
		z2.Multiply(&z2, &t1) // CB
		t0.Square(&t1)        // BB
		t1.Square(&x2)        // AA
		x3.Add(&z3, &z2)
		z2.Subtract(&z3, &z2)
		x2.Multiply(&t1, &t0) // AA*BB
		t1.Subtract(&t1, &t0) // E
		z2.Square(&z2)
		z3.Mult32(&t1, 121666)
		x3.Square(&x3) // (DA+CB)^2
		t0.Add(&t0, &z3)
		z3.Multiply(&x1, &z2) // x1*(DA-CB)^2
		z2.Multiply(&t1, &t0) // E*(BB + 121666*E)
	}
	x2.Swap(&x3, swap)
	z2.Swap(&z3, swap)
	z2.Invert(&z2)
	x2.Multiply(&x2, &z2)
	copy(dst[:], x2.Bytes())
	clear(e[:])
}

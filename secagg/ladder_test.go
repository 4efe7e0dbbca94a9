package secagg

import (
	"crypto/ecdh"
	"crypto/rand"
	"testing"
)

// TestLadder holds the light build's X25519 against crypto/ecdh: random keys and
// points, points of low order, unreduced ones, and the ignored top bit.
func TestLadder(t *testing.T) {
	points := append([][32]byte{{9}}, lowOrder[:]...)
	for range 300 {
		var u [32]byte
		if _, err := rand.Read(u[:]); err != nil {
			t.Fatal(err)
		}
		points = append(points, u)
	}
	for i := byte(0); i < 19; i++ {
		points = append(points, fieldNear(0xed+i)) // p up to 2^255-1
	}
	for i, u := range points {
		var k, got [32]byte
		if _, err := rand.Read(k[:]); err != nil {
			t.Fatal(err)
		}
		u[31] |= byte(i%2) << 7
		ladder(&got, &k, &u)
		priv, err := ecdh.X25519().NewPrivateKey(k[:])
		if err != nil {
			t.Fatal(err)
		}
		pub, err := ecdh.X25519().NewPublicKey(u[:])
		if err != nil {
			t.Fatal(err)
		}
		want, err := priv.ECDH(pub)
		if err != nil { // of low order
			want = make([]byte, 32)
		}
		if string(got[:]) != string(want) {
			t.Errorf("k %x, u %x: %x, want %x", k, u, got, want)
		}
	}
}

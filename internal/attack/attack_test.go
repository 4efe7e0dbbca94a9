package attack

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/big"
	"testing"
)

// The pieces against published vectors; the whole is held by the real coordinator
// and the real device, in lab/cmd/starling.
func TestPieces(t *testing.T) {
	for s, want := range map[int64]string{ // RFC 8032's base point, and its double
		1: "5866666666666666666666666666666666666666666666666666666666666666",
		2: "c9a3f86aae465f0e56513864510f3997561fa2c9e85ea21dc2292309f3cd6022",
	} {
		if got := hex.EncodeToString(commitment(big.NewInt(s))); got != want {
			t.Errorf("%d * B is %s", s, got)
		}
	}
	for v, want := range map[float64]string{0: "f90000", 1: "f93c00", 1.5: "f93e00", 65504: "f97bff", 100000: "fa47c35000",
		1.1: "fb3ff199999999999a", 5.960464477539063e-8: "f90001", -4.1: "fbc010666666666666", math.MaxFloat32: "fa7f7fffff"} {
		if got := hex.EncodeToString(Encode(v)); got != want { // RFC 8949, appendix A
			t.Errorf("%v is %s, %s expected", v, got, want)
		}
		if back, err := Decode(Encode(v)); err != nil || back != v {
			t.Errorf("%v comes back as %v, %v", v, back, err)
		}
	}
	secret := randomScalar()
	f := newPolynomial(secret, 3)
	if interpolate(map[int]*big.Int{1: f.at(1), 4: f.at(4), 5: f.at(5)}).Cmp(secret) != 0 {
		t.Error("three shares do not give the secret back")
	}
	v := []uint32{1, 2, 1<<11 - 1, 0, 77}
	if got := unpack(pack(v, 11), len(v), 11); !bytes.Equal(pack(got, 11), pack(v, 11)) || got[4] != 77 {
		t.Errorf("packed and unpacked: %v", got)
	}
	// docs/PROTOCOL.md, section 7.
	if got := (contract{ppm: 50_000, breach: 40}).threshold(64); got != 43 {
		t.Errorf("threshold of 64 at 5 %% and 40 bits: %d", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(Array{1, []byte("x"), "y", true, nil, 0.5, Array{}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := Decode(b); err == nil {
			Encode(v)
		}
	})
}

package attack

import (
	"bytes"
	"crypto/ed25519"
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

// TestLots: RFC 9381, appendix B.3, example 17.
func TestLots(t *testing.T) {
	unhex := func(text string) []byte {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	key := ed25519.NewKeyFromSeed(unhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
	lot := drawLot(key, []byte{0x72})
	if want := unhex("f3141cd382dc42909d19ec5110469e4feae18300e94f304590abdced48aed593" +
		"3bf0864a62558b3ed7f2fea45c92a465301b3bbf5e3e54ddf2d935be3b67926da3ef39226bbc355bdc9850112c8f4b02"); !bytes.Equal(lot, want) {
		t.Errorf("lot %x", lot)
	}
	want := unhex("eb4440665d3891d668e7e0fcaf587f1b4bd7fbfe99d0eb2211ccec90496310eb5e33821bc613efb94db5e5b54c70a848a0bef4553a41befc57663b56373a5031")
	if output, ok := checkLot(public(key), []byte{0x72}, lot); !ok || !bytes.Equal(output, want) {
		t.Errorf("%v: %x", ok, output)
	}
	if _, ok := checkLot(public(key), []byte{0x73}, lot); ok {
		t.Error("it holds for another input")
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

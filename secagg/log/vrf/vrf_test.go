package vrf

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestVectors: RFC 9381, appendix B.3, examples 16 to 18.
func TestVectors(t *testing.T) {
	for _, v := range []struct{ secret, public, input, point, proof, output string }{
		{
			"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
			"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
			"",
			"91bbed02a99461df1ad4c6564a5f5d829d0b90cfc7903e7a5797bd658abf3318",
			"8657106690b5526245a92b003bb079ccd1a92130477671f6fc01ad16f26f723f26f8a57ccaed74ee1b190bed1f479d97" +
				"27d2d0f9b005a6e456a35d4fb0daab1268a1b0db10836d9826a528ca76567805",
			"90cf1df3b703cce59e2a35b925d411164068269d7b2d29f3301c03dd757876ff" +
				"66b71dda49d2de59d03450451af026798e8f81cd2e333de5cdf4f3e140fdd8ae",
		},
		{
			"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
			"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
			"72",
			"5b659fc3d4e9263fd9a4ed1d022d75eaacc20df5e09f9ea937502396598dc551",
			"f3141cd382dc42909d19ec5110469e4feae18300e94f304590abdced48aed5933bf0864a62558b3ed7f2fea45c92a465" +
				"301b3bbf5e3e54ddf2d935be3b67926da3ef39226bbc355bdc9850112c8f4b02",
			"eb4440665d3891d668e7e0fcaf587f1b4bd7fbfe99d0eb2211ccec90496310eb" +
				"5e33821bc613efb94db5e5b54c70a848a0bef4553a41befc57663b56373a5031",
		},
		{
			"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
			"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
			"af82",
			"bf4339376f5542811de615e3313d2b36f6f53c0acfebb482159711201192576a",
			"9bc0f79119cc5604bf02d23b4caede71393cedfbb191434dd016d30177ccbf8096bb474e53895c362d8628ee9f9ea3c0" +
				"e52c7a5c691b6c18c9979866568add7a2d41b00b05081ed0f58ee5e31b3a970e",
			"645427e5d00c62a23fb703732fa5d892940935942101e456ecca7bb217c61c45" +
				"2118fec1219202a0edcf038bb6373241578be7217ba85a2687f7a0310b2df19f",
		},
	} {
		key := ed25519.NewKeyFromSeed(unhex(t, v.secret))
		public, input := [32]byte(unhex(t, v.public)), unhex(t, v.input)
		if !bytes.Equal(key.Public().(ed25519.PublicKey), public[:]) {
			t.Fatalf("%s: public key %x", v.secret, key.Public())
		}
		if h, err := encode(&public, input); err != nil || !bytes.Equal(h.Bytes(), unhex(t, v.point)) {
			t.Errorf("%s: point %x, %v", v.secret, h.Bytes(), err)
		}
		proof, err := Prove(key, input)
		if err != nil || !bytes.Equal(proof[:], unhex(t, v.proof)) {
			t.Errorf("%s: proof %x, %v", v.secret, proof, err)
		}
		if out, err := Verify(&public, input, &proof); err != nil || !bytes.Equal(out[:], unhex(t, v.output)) {
			t.Errorf("%s: verified %x, %v", v.secret, out, err)
		}
		if out, err := Output(&proof); err != nil || !bytes.Equal(out[:], unhex(t, v.output)) {
			t.Errorf("%s: output %x, %v", v.secret, out, err)
		}
	}
}

// TestRefused: a proof holds for its key and input alone, and not with a bit changed.
func TestRefused(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	key, public := drawn(rnd)
	input := []byte("round 7")
	proof, err := Prove(key, input)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, public [32]byte, input []byte, proof [ProofSize]byte) {
		t.Helper()
		if out, err := Verify(&public, input, &proof); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %x, %v", what, out[:4], err)
		}
	}
	refused("another input", public, []byte("round 8"), proof)
	_, other := drawn(rnd)
	refused("another key", other, input, proof)
	for bit := range 8 * ProofSize {
		p := proof
		p[bit/8] ^= 1 << (bit % 8)
		refused(fmt.Sprintf("bit %d", bit), public, input, p)
	}
	refused("nothing", public, input, [ProofSize]byte{})

	// s and s+l are the same number: only one of them is a proof.
	order := unhex(t, "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
	p, carry := proof, 0
	for i, b := range order {
		carry += int(p[48+i]) + int(b)
		p[48+i], carry = byte(carry), carry>>8
	}
	refused("s of two forms", public, input, p)

	refused("no point", [32]byte{2}, input, proof)
}

// TestWeakKeys: under a key of low order, whose secret is 0, everybody proves, of every input,
// the same number. The equations hold; it is refused for the key.
func TestWeakKeys(t *testing.T) {
	public, input := [32]byte{1}, []byte("round 7")
	h, err := encode(&public, input)
	if err != nil {
		t.Fatal(err)
	}
	k, err := edwards25519.NewScalar().SetUniformBytes(bytes.Repeat([]byte{7}, 64))
	if err != nil {
		t.Fatal(err)
	}
	u, v := new(edwards25519.Point).ScalarBaseMult(k), new(edwards25519.Point).ScalarMult(k, h)
	c := challenge(public[:], h.Bytes(), public[:], u.Bytes(), v.Bytes())
	proof := [ProofSize]byte(slices.Concat(public[:], c[:], k.Bytes()))
	if out, err := Verify(&public, input, &proof); !errors.Is(err, ErrProof) {
		t.Errorf("%x, %v", out[:4], err)
	}
}

// TestPoints: of each point one encoding is taken.
func TestPoints(t *testing.T) {
	for text, valid := range map[string]bool{
		"0100000000000000000000000000000000000000000000000000000000000000": true,
		"0100000000000000000000000000000000000000000000000000000000000080": false, // x = 0, negative
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": false, // y = p+1
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": true,  // y = p-1
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff": false,
	} {
		_, err := point(unhex(t, text))
		_, twin := plainPoint(unhex(t, text))
		if (err == nil) != valid || twin != valid {
			t.Errorf("%s: %v, twin %v", text, err, twin)
		}
	}
}

// TestOneOutput: a holder that adds a point of low order to gamma proves the same number, or
// none: it cannot choose among several.
func TestOneOutput(t *testing.T) {
	key, public := drawn(rand.New(rand.NewPCG(3, 4)))
	proof, err := Prove(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Verify(&public, nil, &proof)
	if err != nil {
		t.Fatal(err)
	}
	// Of order 8 (RFC 7748's curve in Edwards form).
	low, err := point(unhex(t, "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"))
	if err != nil || !lowOrder(low) {
		t.Fatal(err)
	}
	gamma, err := point(proof[:32])
	if err != nil {
		t.Fatal(err)
	}
	for range 7 {
		gamma.Add(gamma, low)
		p := proof
		copy(p[:32], gamma.Bytes())
		if out, err := Output(&p); err != nil || out != want {
			t.Errorf("another output: %v", err)
		}
		if _, err := Verify(&public, nil, &p); !errors.Is(err, ErrProof) {
			t.Errorf("verified: %v", err)
		}
	}
	if gamma.Add(gamma, low).Equal(must(point(proof[:32]))) != 1 {
		t.Error("not of order 8")
	}
}

func must(p *edwards25519.Point, err error) *edwards25519.Point {
	if err != nil {
		panic(err)
	}
	return p
}

func drawn(rnd *rand.Rand) (ed25519.PrivateKey, [32]byte) {
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(rnd.Uint32())
	}
	key := ed25519.NewKeyFromSeed(seed)
	return key, [32]byte(key.Public().(ed25519.PublicKey))
}

func TestBadKey(t *testing.T) {
	if _, err := Prove(make([]byte, 32), nil); err == nil {
		t.Error("32 bytes are no private key")
	}
}

// FuzzVerify: what strangers send is refused or is the one proof; with plain as its twin.
func FuzzVerify(f *testing.F) {
	key, public := drawn(rand.New(rand.NewPCG(5, 6)))
	proof, err := Prove(key, []byte("input"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(public[:], []byte("input"), proof[:])
	f.Add(make([]byte, 32), []byte(nil), make([]byte, ProofSize))
	f.Fuzz(func(t *testing.T, public, input, proof []byte) {
		if len(public) != 32 || len(proof) != ProofSize {
			return
		}
		out, err := Verify((*[32]byte)(public), input, (*[ProofSize]byte)(proof))
		want, ok := plainVerify(public, input, proof)
		if ok != (err == nil) || ok && !bytes.Equal(out[:], want) {
			t.Fatalf("%x %x %x: %v, twin %v", public, input, proof, err, ok)
		}
	})
}

func BenchmarkProve(b *testing.B) {
	key, _ := drawn(rand.New(rand.NewPCG(7, 8)))
	for b.Loop() {
		if _, err := Prove(key, []byte("a round of a job")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	key, public := drawn(rand.New(rand.NewPCG(7, 8)))
	proof, err := Prove(key, []byte("a round of a job"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Verify(&public, []byte("a round of a job"), &proof); err != nil {
			b.Fatal(err)
		}
	}
}

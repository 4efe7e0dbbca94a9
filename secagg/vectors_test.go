package secagg

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"testing"
)

// The primitives are the standard library's; these vectors hold our use of them
// (byte order, clamping, lanes) against the documents.

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRFC7748(t *testing.T) {
	// Section 6.1: Diffie-Hellman.
	a := [32]byte(unhex(t, "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"))
	b := [32]byte(unhex(t, "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"))
	alice, bob := x25519Private(&a), x25519Private(&b)
	if got := hex.EncodeToString(alice.PublicKey().Bytes()); got != "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a" {
		t.Errorf("Alice's public key %s", got)
	}
	for _, x := range []struct {
		k   dhKey
		pub []byte
	}{{alice, bob.PublicKey().Bytes()}, {bob, alice.PublicKey().Bytes()}} {
		ss, err := agree(x.k, x.pub)
		if err != nil || hex.EncodeToString(ss) != "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742" {
			t.Errorf("shared secret %x, %v", ss, err)
		}
	}
	if a != [32]byte{} {
		t.Error("x25519Private left the key bytes behind")
	}
	// Section 5.2: one and a thousand iterations.
	k, u := make([]byte, 32), make([]byte, 32)
	k[0], u[0] = 9, 9
	for i := 1; i <= 1000; i++ {
		x := [32]byte(k)
		ss, err := agree(x25519Private(&x), u)
		if err != nil {
			t.Fatal(err)
		}
		k, u = ss, k
		want := map[int]string{
			1:    "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079",
			1000: "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51",
		}[i]
		if want != "" && hex.EncodeToString(k) != want {
			t.Errorf("after %d iterations %x", i, k)
		}
	}
}

func TestRFC5869(t *testing.T) {
	// Appendix A.1.
	okm, err := hkdf.Key(sha256.New, unhex(t, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"),
		unhex(t, "000102030405060708090a0b0c"), string(unhex(t, "f0f1f2f3f4f5f6f7f8f9")), 42)
	if err != nil || hex.EncodeToString(okm) != "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865" {
		t.Errorf("%x, %v", okm, err)
	}
	// derive is that function with our salt, label || hash || extra as info.
	var bind Hash
	bind[5] = 7
	info := append(append([]byte("pair mask"), bind[:]...), 0, 1, 2, 3)
	want, err := hkdf.Key(sha256.New, []byte("secret"), []byte("starling/secagg/1"), string(info), 16)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 16)
	derive(got, []byte("secret"), labelPairMask, &bind, 0, 1, 2, 3)
	if !bytes.Equal(got, want) {
		t.Errorf("derive %x, want %x", got, want)
	}
}

func TestRFC8032(t *testing.T) {
	// Section 7.1, tests 1 to 3.
	for _, v := range []struct{ public, message, sign string }{
		{"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
			"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
		{"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
			"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
		{"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
			"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
	} {
		public, message, sign := unhex(t, v.public), unhex(t, v.message), unhex(t, v.sign)
		if !verify(public, message, sign) {
			t.Errorf("%s does not verify", v.sign)
		}
		sign[40] ^= 1
		if verify(public, message, sign) {
			t.Error("a changed signature verifies")
		}
	}
}

func TestAESVectors(t *testing.T) {
	// FIPS-197 appendix C.1.
	block, err := aes.NewCipher(unhex(t, "000102030405060708090a0b0c0d0e0f"))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 16)
	block.Encrypt(out, unhex(t, "00112233445566778899aabbccddeeff"))
	if hex.EncodeToString(out) != "69c4e0d86a7b0430d8cdb78070b4c55a" {
		t.Errorf("AES-128: %x", out)
	}
	// SP 800-38A section F.5.1.
	block, err = aes.NewCipher(unhex(t, "2b7e151628aed2a6abf7158809cf4f3c"))
	if err != nil {
		t.Fatal(err)
	}
	text := unhex(t, "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
	cipher.NewCTR(block, unhex(t, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")).XORKeyStream(text, text)
	if hex.EncodeToString(text) != "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee" {
		t.Errorf("AES-128-CTR: %x", text)
	}
	// The mask generator is the block cipher on the counter 0, 1, 2, ..., in
	// little-endian lanes.
	key := maskKey{1, 2, 3}
	block, err = aes.NewCipher(key[:])
	if err != nil {
		t.Fatal(err)
	}
	const n = 5000 // more than one internal block of key stream
	for _, width := range []int{7, 16, 17, 32} {
		v := make([]uint32, n)
		addMasks(v, []maskKey{key}, nil, width)
		lane := 2
		if width > 16 {
			lane = 4
		}
		for i := range v {
			var counter, stream [16]byte
			binary.BigEndian.PutUint64(counter[8:], uint64(i*lane/16))
			block.Encrypt(stream[:], counter[:])
			var want uint32
			for j := range lane {
				want |= uint32(stream[i*lane%16+j]) << (8 * j)
			}
			if (v[i]^want)&ringMask(width) != 0 {
				t.Fatalf("width %d, symbol %d: %x, want %x", width, i, v[i], want)
			}
		}
	}
}

// TestLowOrder holds the list against crypto/ecdh: each is refused there, and
// its twin with the ignored top bit too.
func TestLowOrder(t *testing.T) {
	k := [32]byte{9: 1}
	priv := x25519Private(&k)
	for _, u := range lowOrder {
		for _, top := range []byte{0, 0x80} {
			u := u
			u[31] |= top
			if _, err := agree(priv, u[:]); err == nil {
				t.Errorf("%x is not of low order", u)
			}
			if !hasLowOrder(u[:]) {
				t.Errorf("%x passes", u)
			}
		}
	}
	if hasLowOrder(priv.PublicKey().Bytes()) {
		t.Error("an honest key is refused")
	}
}

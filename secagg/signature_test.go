package secagg

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"testing"

	"filippo.io/edwards25519"

	"github.com/starling-fl/starling/internal/leaf/cputime"
)

// torsion is a point of order 8.
func torsion(t testing.TB) *edwards25519.Point {
	b, err := hex.DecodeString("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
	if err != nil {
		t.Fatal(err)
	}
	p, err := new(edwards25519.Point).SetBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	four := new(edwards25519.Point).Double(p)
	four.Double(four)
	if four.Equal(edwards25519.NewIdentityPoint()) == 1 || !lowOrderPoint(p) {
		t.Fatal("not of order 8")
	}
	return p
}

type owned struct {
	key       [32]byte
	statement []byte
	sign      [sigSize]byte
}

func (o *owned) signed() signed { return signed{&o.key, o.statement, &o.sign} }

// oddSign signs as the holder of a key can who adds points of low order to key
// and nonce: times says how often each.
func oddSign(t testing.TB, rand *drbg, statement []byte, timesA, timesR int) *owned {
	t.Helper()
	a, err := randomScalar(rand)
	if err != nil {
		t.Fatal(err)
	}
	r, err := randomScalar(rand)
	if err != nil {
		t.Fatal(err)
	}
	with := func(x *edwards25519.Scalar, times int) *edwards25519.Point {
		p := new(edwards25519.Point).ScalarBaseMult(x)
		for range times {
			p.Add(p, torsion(t))
		}
		return p
	}
	o := &owned{statement: statement}
	copy(o.key[:], with(a, timesA).Bytes())
	copy(o.sign[:32], with(r, timesR).Bytes())
	h := sha512.New()
	h.Write(o.sign[:32])
	h.Write(o.key[:])
	h.Write(statement)
	k, err := edwards25519.NewScalar().SetUniformBytes(h.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	copy(o.sign[32:], k.MultiplyAdd(k, a, r).Bytes())
	return o
}

// TestSignaturesWithLowOrderParts: one by one, in a batch, and at the
// coordinator (all call verify or verifyAll) such signatures are valid, always;
// crypto/ed25519 refuses most of them, so that a batch of its equation would
// accept some by chance.
func TestSignaturesWithLowOrderParts(t *testing.T) {
	rand := newDRBG("low order parts")
	strict := 0
	for i := range 64 {
		o := oddSign(t, rand, fmt.Appendf(nil, "statement %d", i), i%8, i/8)
		if ed25519.Verify(o.key[:], o.statement, o.sign[:]) {
			strict++
		}
		if !verify(o.key[:], o.statement, o.sign[:]) {
			t.Errorf("key with %d, nonce with %d times a point of order 8: refused alone", i%8, i/8)
		}
		if sound, err := verifyBatch(rand, []signed{o.signed()}); err != nil || !sound {
			t.Errorf("key with %d, nonce with %d times a point of order 8: refused in a batch (%v)", i%8, i/8, err)
		}
	}
	if strict == 0 || strict > 32 {
		t.Errorf("crypto/ed25519 accepts %d of 64: the test tries the wrong thing", strict)
	}
}

// TestEncodingsThatNobodyMakes: keys of low order, and second encodings of a
// point, are refused by both.
func TestEncodingsThatNobodyMakes(t *testing.T) {
	rand := newDRBG("encodings")
	good := oddSign(t, rand, []byte("x"), 0, 0)
	for name, key := range map[string][32]byte{
		"identity": {0: 1}, "order 2": fieldNear(0xec), "order 4": {}, "signed identity": {0: 1, 31: 0x80},
		"order 8": [32]byte(torsion(t).Bytes()), "p + 1": fieldNear(0xee), "p": fieldNear(0xed), "not on the curve": {0: 2},
		"2^255 - 1": fieldNear(0xff),
	} {
		// With R = [S]B the equation holds for a key of low order.
		bad := &owned{key: key, statement: []byte("x")}
		s := smallScalar(7)
		copy(bad.sign[:32], new(edwards25519.Point).ScalarBaseMult(s).Bytes())
		copy(bad.sign[32:], s.Bytes())
		refusedByBoth(t, rand, "key: "+name, bad, good)
	}
	for name, r := range map[string][32]byte{
		"signed identity": {0: 1, 31: 0x80}, "p + 1": fieldNear(0xee), "signed p - 1": func() [32]byte {
			b := fieldNear(0xec)
			b[31] |= 0x80
			return b
		}(),
	} {
		// [S]B = R + [k]A needs S = ka where R is of low order.
		seed := bytes.Repeat([]byte{9}, 32)
		private := ed25519.NewKeyFromSeed(seed)
		h := sha512.Sum512(seed)
		a, err := edwards25519.NewScalar().SetBytesWithClamping(h[:32])
		if err != nil {
			t.Fatal(err)
		}
		bad := &owned{key: [32]byte(private.Public().(ed25519.PublicKey)), statement: []byte("x")}
		copy(bad.sign[:32], r[:])
		sum := sha512.Sum512(append(append(append([]byte{}, r[:]...), bad.key[:]...), 'x'))
		k, err := edwards25519.NewScalar().SetUniformBytes(sum[:])
		if err != nil {
			t.Fatal(err)
		}
		copy(bad.sign[32:], k.Multiply(k, a).Bytes())
		refusedByBoth(t, rand, "nonce: "+name, bad, good)
	}
	// S + l is the same scalar.
	more := *good
	l, _ := hex.DecodeString("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
	carry := 0
	for i := range 32 {
		carry += int(more.sign[32+i]) + int(l[i])
		more.sign[32+i] = byte(carry)
		carry >>= 8
	}
	refusedByBoth(t, rand, "S + l", &more, good)
}

func refusedByBoth(t *testing.T, rand io.Reader, what string, bad, good *owned) {
	t.Helper()
	if !verify(good.key[:], good.statement, good.sign[:]) {
		t.Fatal("the good one is refused")
	}
	if verify(bad.key[:], bad.statement, bad.sign[:]) {
		t.Errorf("%s: accepted alone", what)
	}
	if at, err := verifyAll(rand, []signed{good.signed(), bad.signed(), good.signed()}); err != nil || at != 1 {
		t.Errorf("%s: batch names %d (%v)", what, at, err)
	}
}

// TestBatchNamesTheFirstBad: each kind of damage, at each place, beside good
// ones, with shared keys and without.
func TestBatchNamesTheFirstBad(t *testing.T) {
	rand := newDRBG("batch")
	for n := 1; n <= 9; n++ {
		keys := make([]ed25519.PrivateKey, n)
		for i := range keys {
			seed, err := random32(rand)
			if err != nil {
				t.Fatal(err)
			}
			keys[i] = ed25519.NewKeyFromSeed(seed[:])
		}
		for _, shared := range []bool{false, true} {
			all := make([]signed, n)
			for i := range all {
				k := keys[i]
				if shared {
					k = keys[0]
				}
				statement := fmt.Appendf(nil, "statement %d", i)
				all[i] = signed{(*[32]byte)(k.Public().(ed25519.PublicKey)), statement, (*[sigSize]byte)(ed25519.Sign(k, statement))}
			}
			if sound, err := verifyBatch(rand, all); err != nil || !sound {
				t.Fatalf("%d good signatures: %v, %v", n, sound, err)
			}
			for at := range n {
				for bit := range 12 {
					spoiled := append([]signed(nil), all...)
					sign := *all[at].sign
					sign[bit*5] ^= 1 << (bit % 8)
					spoiled[at].sign = &sign
					if got, err := verifyAll(rand, spoiled); err != nil || got != at {
						t.Fatalf("%d signatures, %d spoiled: batch names %d (%v)", n, at, got, err)
					}
				}
				spoiled := append([]signed(nil), all...)
				spoiled[at].statement = []byte("another")
				if got, err := verifyAll(rand, spoiled); err != nil || got != at {
					t.Fatalf("%d signatures, statement %d changed: batch names %d (%v)", n, at, got, err)
				}
			}
		}
	}
}

// TestErrorsThatCancel: two signatures of one forger whose errors add up to
// nothing pass an equation whose coefficients are known, here all zero or all
// one, and not one with random coefficients.
func TestErrorsThatCancel(t *testing.T) {
	rand := newDRBG("cancel")
	a, b := oddSign(t, rand, []byte("a"), 0, 0), oddSign(t, rand, []byte("b"), 0, 0)
	for o, by := range map[*owned]*edwards25519.Scalar{a: smallScalar(5), b: edwards25519.NewScalar().Negate(smallScalar(5))} {
		s, err := edwards25519.NewScalar().SetCanonicalBytes(o.sign[32:])
		if err != nil {
			t.Fatal(err)
		}
		copy(o.sign[32:], s.Add(s, by).Bytes())
	}
	both := []signed{a.signed(), b.signed()}
	if sound, err := verifyBatch(bytes.NewReader(bytes.Repeat(append([]byte{1}, make([]byte, 15)...), 2)), both); err != nil || !sound {
		t.Errorf("equal coefficients: %v, %v: the test tries the wrong thing", sound, err)
	}
	for range 20 {
		if at, err := verifyAll(rand, both); err != nil || at != 0 {
			t.Fatalf("random coefficients: batch names %d (%v)", at, err)
		}
	}
	if _, err := verifyAll(bytes.NewReader(make([]byte, 31)), both); err == nil {
		t.Error("checked without randomness")
	}
}

// FuzzVerify holds verify against crypto/ed25519, which leaves the cofactor out,
// and the batch against verify.
func FuzzVerify(f *testing.F) {
	rand := newDRBG("fuzz verify")
	for i := range 8 {
		o := oddSign(f, rand, []byte("seed"), i, 8-i)
		f.Add(o.key[:], o.statement, o.sign[:])
	}
	o := oddSign(f, rand, []byte("seed"), 0, 0)
	f.Add(o.key[:], o.statement, o.sign[:])
	good := oddSign(f, rand, []byte("good"), 0, 0)
	zero := edwards25519.NewScalar()
	l := edwards25519.NewScalar().Subtract(zero, smallScalar(1)) // l - 1
	primeOrder := func(b []byte) bool {
		p, err := new(edwards25519.Point).SetBytes(b)
		if err != nil {
			return false
		}
		q := new(edwards25519.Point).ScalarMult(l, p)
		return q.Add(q, p).Equal(edwards25519.NewIdentityPoint()) == 1
	}
	f.Fuzz(func(t *testing.T, key, statement, sign []byte) {
		if len(key) != 32 || len(sign) != sigSize {
			if verify(key, statement, sign) {
				t.Fatal("wrong length accepted")
			}
			return
		}
		ours, strict := verify(key, statement, sign), ed25519.Verify(key, statement, sign)
		if strict && !ours {
			p, err := new(edwards25519.Point).SetBytes(key)
			if err != nil || !lowOrderPoint(p) && bytes.Equal(p.Bytes(), key) {
				t.Fatal("crypto/ed25519 accepts what verify refuses")
			}
		}
		if ours && !strict && primeOrder(key) && primeOrder(sign[:32]) {
			t.Fatal("without parts of low order, verify accepts what crypto/ed25519 refuses")
		}
		x := signed{(*[32]byte)(key), statement, (*[sigSize]byte)(sign)}
		sound, err := verifyBatch(newDRBG("%x", sign), []signed{good.signed(), x, good.signed()})
		if err != nil || sound != ours {
			t.Fatalf("alone %v, in a batch %v (%v)", ours, sound, err)
		}
	})
}

// BenchmarkVerify times a roster's signatures in a shard of 64, one by one and at
// once: n keys' own and n of one authority.
func BenchmarkVerify(b *testing.B) {
	rand := newDRBG("bench verify")
	authority := ed25519.NewKeyFromSeed(make([]byte, 32))
	var all []signed
	for i := range 64 {
		seed, err := random32(rand)
		if err != nil {
			b.Fatal(err)
		}
		for _, k := range []ed25519.PrivateKey{ed25519.NewKeyFromSeed(seed[:]), authority} {
			statement := make([]byte, 200)
			statement[0] = byte(i)
			all = append(all, signed{(*[32]byte)(k.Public().(ed25519.PublicKey)), statement, (*[sigSize]byte)(ed25519.Sign(k, statement))})
		}
	}
	b.Run("singly", func(b *testing.B) {
		defer cputime.Benchmark(b)()
		for b.Loop() {
			for _, x := range all {
				if !ed25519.Verify(x.key[:], x.statement, x.sign[:]) {
					b.Fatal("refused")
				}
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		defer cputime.Benchmark(b)()
		for b.Loop() {
			for _, x := range all {
				if !verify(x.key[:], x.statement, x.sign[:]) {
					b.Fatal("refused")
				}
			}
		}
	})
	b.Run("batch", func(b *testing.B) {
		defer cputime.Benchmark(b)()
		for b.Loop() {
			if sound, err := verifyBatch(rand, all); err != nil || !sound {
				b.Fatal("refused")
			}
		}
	})
}

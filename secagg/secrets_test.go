package secagg

import (
	"errors"
	"math/big"
	"slices"
	"testing"

	"filippo.io/edwards25519"

	"github.com/starling-fl/starling/secagg/internal/tail"
)

// A polynomial's coefficients are drawn one by one: were two alike, or one the secret,
// fewer than t shares would do.
func TestPolynomialIsRandom(t *testing.T) {
	rand := newDRBG("polynomial")
	secret, err := randomScalar(rand)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 3 {
		f, err := newPolynomial(secret, 9, rand)
		if err != nil || f[0].Equal(secret) != 1 || f[0] == secret {
			t.Fatalf("not over the secret: %v", err)
		}
		for k, a := range f[1:] {
			if b := string(a.Bytes()); seen[b] || a.Equal(secret) == 1 || a.Equal(edwards25519.NewScalar()) == 1 {
				t.Errorf("coefficient %d is another's, the secret or zero", k+1)
			} else {
				seen[b] = true
			}
		}
	}
}

// The threshold is the least that holds the bits asked for, and not one bit less: for
// every size, of several shares of corrupted devices, by exact arithmetic.
func TestThresholdToTheBit(t *testing.T) {
	near := 0 // thresholds that half as many bits' difference would lower
	for _, ppm := range []uint32{10_000, 50_000, 100_000, 200_000} {
		p := big.NewRat(int64(ppm), 1_000_000)
		for n := 4; n <= 80; n += 3 {
			for _, bits := range []int{1, 7, 20, 40} {
				got, err := Config{CorruptPPM: ppm, BreachBits: bits}.Threshold(n)
				if err != nil {
					continue
				}
				tail := tail.Binomial(n, p, max(2*got-n, 0))
				if scaled := new(big.Int).Lsh(tail.Num, uint(bits)); scaled.Cmp(tail.Den) > 0 {
					t.Fatalf("%d ppm of %d devices, %d bits: t = %d is broken with probability 2^%.2f", ppm, n, bits, got, tail.Log2())
				}
				if less := (Config{CorruptPPM: ppm, BreachBits: bits - 1}); bits > 1 {
					if lower, err := less.Threshold(n); err == nil && lower < got {
						near++
					}
				}
			}
		}
	}
	if near < 5 {
		t.Errorf("%d thresholds turn on one bit: the test says little", near)
	}
}

// A vector that was judged and admitted is in the sum once, however often it is handed
// in, and a sum that lacks one is not unmasked: its masks would stay in.
func TestVectorsCountOnce(t *testing.T) {
	r := newRound(t, "once in the sum", testConfig(40, 11, 12, 6), 6)
	r.key()
	s := r.shards[0]
	r.must(r.share(s))
	var last *Examined
	for k, d := range r.of(s, TurnMask) {
		r.must(d.c.Deliver(s.Delivery(d.id)))
		m, err := d.c.Mask(d.symbols)
		r.must(err)
		j := s.Examine(d.id, m)
		r.must(s.Admit(j))
		if k == 0 {
			last = j
			continue
		}
		s.Sum(j)
		s.Sum(j)
	}
	sv, err := s.CloseCollecting()
	r.must(err)
	cs, err := r.confirm(s, sv)
	r.must(err)
	r.reveal(s, cs)
	var shard *ShardError
	if sum, err := s.Unmask(); err == nil || errors.As(err, &shard) {
		t.Fatalf("a sum that lacks a vector: %v, %v", sum, err)
	}
	s.Sum(last)
	sum, err := s.Unmask()
	r.must(err)
	if !slices.Equal(sum, r.plain(s)) {
		t.Error("wrong sum")
	}
}

// A box opens for the holder it was sealed for, from the dealer that sealed it, in its
// round; nothing of another is taken for a share.
func TestBoxesOpenForOne(t *testing.T) {
	rand := newDRBG("boxes")
	var a, b [32]byte
	rand.Read(a[:])
	rand.Read(b[:])
	dealer, _, err := newSealer(SuiteX25519, a[:])
	if err != nil {
		t.Fatal(err)
	}
	holder, public, err := newSealer(SuiteX25519, b[:])
	if err != nil {
		t.Fatal(err)
	}
	ss, err := dealer.agree(public)
	if err != nil {
		t.Fatal(err)
	}
	plain, roster := [plainSize]byte{1, 2, 3}, Hash{4}
	box, err := dealer.seal(nil, &ss, public, &plain, &roster, 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	open := func(box []byte, roster Hash, from, to int) ([plainSize]byte, bool) {
		var got [plainSize]byte
		ok := holder.open(&got, &ss, box, &roster, from, to)
		return got, ok
	}
	if got, ok := open(box, roster, 3, 5); !ok || got != plain {
		t.Errorf("the holder's own: %v", got[:4])
	}
	broken := slices.Clone(box)
	broken[7] ^= 1
	for what, opens := range map[string]func() ([plainSize]byte, bool){
		"another dealer's": func() ([plainSize]byte, bool) { return open(box, roster, 4, 5) },
		"another holder's": func() ([plainSize]byte, bool) { return open(box, roster, 3, 6) },
		"the other way":    func() ([plainSize]byte, bool) { return open(box, roster, 5, 3) },
		"another roster's": func() ([plainSize]byte, bool) { return open(box, Hash{5}, 3, 5) },
		"a broken one":     func() ([plainSize]byte, bool) { return open(broken, roster, 3, 5) },
	} {
		if got, ok := opens(); ok || got == plain {
			t.Errorf("%s opens", what)
		}
	}
}

// Who is in whose shard is chance, not who came first.
func TestPermutationIsNoOrderOfArrival(t *testing.T) {
	rand, first := newDRBG("order"), map[int]bool{}
	for range 20 {
		p, err := permutation(50, rand)
		if err != nil || slices.IsSorted(p) { // one order of 50! is
			t.Fatalf("%v, %v", p, err)
		}
		first[p[0]] = true
	}
	if len(first) < 5 {
		t.Errorf("%d devices come first in 20 orders", len(first))
	}
}

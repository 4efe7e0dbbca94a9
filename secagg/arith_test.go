package secagg

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"filippo.io/edwards25519"
)

// TestPack: for widths 1..32, packing and unpacking is the identity mod 2^b, no
// bit is wasted, and stray bits are refused.
func TestPack(t *testing.T) {
	rnd := newDRBG("pack")
	for width := 1; width <= 32; width++ {
		for _, n := range []int{1, 2, 3, 7, 8, 9, 31, 64, 100, 257} {
			v, sum := make([]uint32, n), make([]uint32, n)
			for i := range v {
				v[i] = uint32(rnd.intn(1 << 32))
				sum[i] = uint32(rnd.intn(1 << 32))
			}
			p := pack(v, width)
			if len(p) != (n*width+7)/8 {
				t.Fatalf("width %d, %d symbols: %d bytes", width, n, len(p))
			}
			if err := checkPacked(p, n, width); err != nil {
				t.Fatal(err)
			}
			// Bit by bit, as the definition has it.
			for i, x := range v {
				for j := range width {
					bit := i*width + j
					if uint32(p[bit/8]>>(bit%8)&1) != x>>j&1 {
						t.Fatalf("width %d: bit %d of symbol %d", width, j, i)
					}
				}
			}
			before, plain := slices.Clone(sum), slices.Clone(sum)
			addPacked(sum, p, width)
			if addPackedPlainly(plain, p, width); !slices.Equal(sum, plain) {
				t.Fatalf("width %d, %d symbols: the plain twin differs", width, n)
			}
			for i := range sum {
				if (sum[i]-before[i]-v[i])&ringMask(width) != 0 {
					t.Fatalf("width %d: symbol %d of %d is %x, want %x", width, i, n, sum[i]-before[i], v[i])
				}
			}
			if checkPacked(p[:len(p)-1], n, width) == nil || checkPacked(append(p, 0), n, width) == nil {
				t.Fatal("a wrong length passes")
			}
			if n*width%8 != 0 {
				p[len(p)-1] |= 0x80
				if checkPacked(p, n, width) == nil {
					t.Fatalf("width %d, %d symbols: a stray bit passes", width, n)
				}
			}
		}
	}
}

func TestCentre(t *testing.T) {
	for width := 1; width <= 32; width++ {
		half := int64(1) << (width - 1)
		for _, x := range []int64{-half, -half + 1, -1, 0, 1, half - 1} {
			if x < -half || x >= half {
				continue
			}
			// Whatever is above the ring's bits is ignored.
			for _, above := range []uint32{0, 0xffffffff} {
				u := uint32(x)&ringMask(width) | above&^ringMask(width)
				if got := centre(u, width); got != x {
					t.Errorf("width %d: %d comes back as %d", width, x, got)
				}
			}
		}
	}
}

// TestAddMasksTwin holds the word-parallel sum against the plain one, for every
// width and for sizes around the block and lane boundaries.
func TestAddMasksTwin(t *testing.T) {
	rnd := newDRBG("masks")
	for width := 1; width <= 32; width++ {
		for _, n := range []int{1, 3, 5, 1023, 2047, 2049, 4100} {
			keys := make([]maskKey, 13)
			for i := range keys {
				rnd.Read(keys[i][:])
			}
			cut := rnd.intn(len(keys) + 1)
			a := make([]uint32, n)
			for i := range a {
				a[i] = uint32(rnd.intn(1 << 32))
			}
			b := slices.Clone(a)
			addMasks(a, keys[:cut], keys[cut:], width)
			addMasksPlain(b, keys[:cut], keys[cut:], width)
			for i := range a {
				if (a[i]^b[i])&ringMask(width) != 0 {
					t.Fatalf("width %d, n %d, %d+%d masks: symbol %d", width, n, cut, len(keys)-cut, i)
				}
			}
		}
	}
}

// TestAddMasksCarries drives the lane sums over their carries: as many key
// streams as a call may take of the largest shards.
func TestAddMasksCarries(t *testing.T) {
	keys := make([]maskKey, maxStreams+300)
	for i := range keys {
		keys[i][0], keys[i][1] = byte(i), byte(i>>8)
	}
	a, b := make([]uint32, 9), make([]uint32, 9)
	addMasks(a, keys, keys[:50], 16)
	addMasksPlain(b, keys, keys[:50], 16)
	for i := range a {
		if (a[i]^b[i])&0xffff != 0 {
			t.Fatalf("symbol %d", i)
		}
	}
}

// TestSharing is the algebra: any t shares rebuild, t-1 do not, all verify, and
// a changed one does not. Every step against math/big.
func TestSharing(t *testing.T) {
	l, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	toBig := func(s *edwards25519.Scalar) *big.Int {
		b := s.Bytes()
		slices.Reverse(b)
		return new(big.Int).SetBytes(b)
	}
	rnd := newDRBG("sharing")
	for _, c := range []struct{ n, t int }{{2, 2}, {3, 2}, {5, 3}, {13, 9}, {64, 44}} {
		secret, err := randomScalar(rnd)
		if err != nil {
			t.Fatal(err)
		}
		f, err := newPolynomial(secret, c.t, rnd)
		if err != nil {
			t.Fatal(err)
		}
		v, err := newVerifier(f.commit(nil))
		if err != nil {
			t.Fatal(err)
		}
		if !opens(f.commit(nil)[:pointSize], secret) {
			t.Error("the secret does not open its commitment")
		}
		shares := make([]*edwards25519.Scalar, c.n)
		for i := range shares {
			shares[i] = f.share(i)
			want := new(big.Int)
			for k := len(f) - 1; k >= 0; k-- {
				want.Mul(want, big.NewInt(int64(i+1))).Add(want, toBig(f[k])).Mod(want, l)
			}
			if toBig(shares[i]).Cmp(want) != 0 {
				t.Fatalf("share %d is not f(%d)", i, i+1)
			}
			if !v.valid(i, shares[i]) {
				t.Fatalf("share %d does not verify", i)
			}
			bad := edwards25519.NewScalar().Add(shares[i], smallScalar(1))
			if v.valid(i, bad) || v.valid((i+1)%c.n, shares[i]) {
				t.Fatalf("a wrong share %d verifies", i)
			}
		}
		for range 5 {
			p, err := permutation(c.n, rnd)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []int{c.t, c.t - 1} {
				pick := p[:m]
				y := make([]edwards25519.Scalar, m)
				for j, i := range pick {
					y[j] = *shares[i]
				}
				got := combine(lagrange(pick), y)
				if (got.Equal(secret) == 1) != (m == c.t) {
					t.Fatalf("n=%d t=%d: %d shares", c.n, c.t, m)
				}
			}
		}
		f.erase()
		for k := range f {
			if f[k].Equal(edwards25519.NewScalar()) != 1 {
				t.Fatal("erase leaves coefficients")
			}
		}
	}
}

func TestMulSmall(t *testing.T) {
	for x := 1; x <= MaxShard; x++ {
		p := edwards25519.NewGeneratorPoint()
		mulSmall(p, uint(x))
		if p.Equal(new(edwards25519.Point).ScalarBaseMult(smallScalar(x))) != 1 {
			t.Fatalf("%d*B", x)
		}
	}
}

func TestPermutation(t *testing.T) {
	rnd := newDRBG("permutation")
	p, err := permutation(100, rnd)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(p)
	for i := range p {
		if p[i] != i {
			t.Fatal("no permutation")
		}
	}
}

func TestShardSizes(t *testing.T) {
	for n := 1; n <= 500; n++ {
		for _, max := range []int{2, 5, 64} {
			sizes := shardSizes(n, max)
			sum := 0
			for _, s := range sizes {
				sum += s
				if s > max || s < sizes[0]-1 || s > sizes[0] {
					t.Fatalf("%d over %d: %v", n, max, sizes)
				}
			}
			if sum != n || len(sizes) != (n+max-1)/max {
				t.Fatalf("%d over %d: %v", n, max, sizes)
			}
		}
	}
	if got := fmt.Sprint(shardSizes(1000, 64)); got != "[63 63 63 63 63 63 63 63 62 62 62 62 62 62 62 62]" {
		t.Error(got)
	}
}

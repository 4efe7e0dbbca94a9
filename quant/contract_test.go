package quant

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"testing"
)

func TestLatticeRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		d    int
		clip float64
	}{{0, 1}, {-1, 1}, {MaxDimension + 1, 1}, {10, 0}, {10, -1}, {10, math.NaN()}, {10, math.Inf(1)}, {10, 1e-30}, {10, 1e30}} {
		if _, err := NewLattice(NF4, c.d, c.clip, [32]byte{}); !errors.Is(err, ErrRange) {
			t.Errorf("NewLattice(%d, %g): %v", c.d, c.clip, err)
		}
	}
	if _, err := NewLattice(Scheme{}, 10, 1, [32]byte{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("zero scheme: %v", err)
	}
	if _, err := Lookup("nf5"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown scheme: %v", err)
	}
	l := mustLattice(t, "nf4", 3, 1)
	for _, x := range [][]float32{{1, nan, 2}, {inf, 1, 2}} {
		if _, err := l.Encode(x, newSeeded(1)); !errors.Is(err, ErrNotFinite) {
			t.Errorf("Encode(%v): %v", x, err)
		}
	}
	if _, err := l.Encode([]float32{1, 2}, newSeeded(1)); !errors.Is(err, ErrLength) {
		t.Errorf("short vector: %v", err)
	}
	if _, err := l.Encode([]float32{1, 2, 3}, bytes.NewReader(make([]byte, 15))); err == nil {
		t.Error("a source that ends early is accepted")
	}
	if _, err := l.EncodeInto(nil, []float32{1, 2, 3}, newSeeded(1)); !errors.Is(err, ErrLength) {
		t.Errorf("no room: %v", err)
	}
	for _, nbar := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := l.DecodeMean(make([]int64, l.D()), nbar); !errors.Is(err, ErrRange) {
			t.Errorf("DecodeMean with nbar %g: %v", nbar, err)
		}
	}
	if _, err := l.DecodeMean(nil, 1); !errors.Is(err, ErrLength) {
		t.Errorf("empty sum: %v", err)
	}
	huge := make([]int64, l.D())
	for i := range huge {
		huge[i] = math.MaxInt64
	}
	if _, err := l.DecodeMean(huge, 1e-300); !errors.Is(err, ErrNotFinite) {
		t.Errorf("overflow: %v", err)
	}
}

// TestWireContract pins what two sides must agree on: signs, step and bound.
// A change of any of these values is a change of the protocol.
func TestWireContract(t *testing.T) {
	l := mustLattice(t, "nf4", 135_176, 0.5)
	h := sha256.New()
	for _, w := range append(append([]uint64(nil), l.rot.s1...), l.rot.s2...) {
		h.Write(binary.LittleEndian.AppendUint64(nil, w))
	}
	if got := hex.EncodeToString(h.Sum(nil)[:8]); got != pinnedSigns {
		t.Errorf("signs hash to %s, want %s", got, pinnedSigns)
	}
	if l.Delta() != pinnedDelta || float64(float32(l.Delta())) != l.Delta() {
		t.Errorf("step is %x, want %x", l.Delta(), pinnedDelta)
	}
	if l.B2() != 2920526 {
		t.Errorf("norm bound is %d", l.B2())
	}
	exact := 2.6 * 0.5 / (12 * math.Sqrt(135_680))
	if l.Delta() < exact || l.Delta() > exact*(1+0x1p-22) {
		t.Errorf("step %g is not the smallest at or above %g", l.Delta(), exact)
	}
}

// TestEncodeAllocations checks that working memory is pooled: what is left is
// the cipher, whatever the length.
func TestEncodeAllocations(t *testing.T) {
	l := mustLattice(t, "nf4", 20_000, 1)
	x, symbols, src := testVector(1, 20_000), make([]int32, l.D()), newSeeded(1)
	got := testing.AllocsPerRun(20, func() {
		if _, err := l.EncodeInto(symbols, x, src); err != nil {
			t.Fatal(err)
		}
	})
	if got > 8 {
		t.Errorf("%v allocations a vector", got)
	}
}

const (
	pinnedSigns = "a9f4d7d487b5f96b"
	pinnedDelta = 0x1.34648ap-12
)

// FuzzEncode: for any finite vector, scheme and key, what leaves obeys the
// symbol range and the norm bound, and decodes to finite values.
func FuzzEncode(f *testing.F) {
	f.Add(uint8(0), []byte{0, 0, 128, 63, 0, 0, 128, 191, 1, 2, 3, 4}, float64(1))
	f.Add(uint8(3), bytes.Repeat([]byte{0xff, 0xff, 0x7f, 0x7f}, 70), 1e-3)
	f.Fuzz(func(t *testing.T, scheme uint8, raw []byte, clip float64) {
		x := make([]float32, min(len(raw)/4, 1<<12))
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		s, err := Lookup(SchemeNames()[int(scheme)%len(registry)])
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLattice(s, len(x), clip, [32]byte{scheme})
		if err != nil {
			return
		}
		symbols, err := l.Encode(x, newSeeded(scheme))
		if err != nil {
			if checkFinite(x) == nil {
				t.Fatalf("finite values are refused: %v", err)
			}
			return
		}
		var norm2 int64
		sum := make([]int64, len(symbols))
		for i, q := range symbols {
			if q > l.MaxSymbol() || q < -l.MaxSymbol() {
				t.Fatalf("symbol %d", q)
			}
			norm2 += int64(q) * int64(q)
			sum[i] = int64(q)
		}
		if norm2 > l.B2() {
			t.Fatalf("squared norm %d, bound %d", norm2, l.B2())
		}
		if _, err := l.DecodeMean(sum, 1); err != nil {
			t.Fatalf("does not decode: %v", err)
		}
	})
}

// A device encodes, shards are summed, and the coordinator decodes the mean.
func ExampleLattice() {
	scheme, err := Lookup("int5")
	if err != nil {
		panic(err)
	}
	width, err := Width(scheme, 64) // bits of the ring that a shard of 64 needs
	if err != nil {
		panic(err)
	}
	lattice, err := NewLattice(scheme, 1000, 1, [32]byte{'s', 'e', 'e', 'd'})
	if err != nil {
		panic(err)
	}
	update := make([]float32, 1000)
	update[0] = 0.5
	sum := make([]int64, lattice.D())
	const devices = 64
	for range devices {
		symbols, err := lattice.Encode(update, rand.Reader)
		if err != nil {
			panic(err)
		}
		for i, q := range symbols {
			sum[i] += int64(q)
		}
	}
	if err := lattice.CheckSum(sum, devices); err != nil {
		panic(err)
	}
	mean, err := lattice.DecodeMean(sum, devices)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d bits, %d symbols for %d values, mean[0] near 0.5: %v\n", width, lattice.D(), lattice.Dim(), math.Abs(float64(mean[0])-0.5) < 0.05)
	// Output: 11 bits, 1024 symbols for 1000 values, mean[0] near 0.5: true
}

// TestLargestDimension: at the longest vector every scheme's bound on the squared norm is positive, so no int64 wraps.
func TestLargestDimension(t *testing.T) {
	for _, s := range SchemeNames() {
		scheme, err := Lookup(s)
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLattice(scheme, MaxDimension, 1, [32]byte{})
		if err != nil || l.B2() <= 0 || float64(l.B2()) > 1<<62 {
			t.Errorf("%v: %v", s, err)
		}
	}
}

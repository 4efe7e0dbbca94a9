package quant

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFormatsRoundTrip packs vectors of awkward lengths in every format with
// every codec: the size is as stated, the error within the format's bound, and
// what was decoded once is decoded again to the bit.
func TestFormatsRoundTrip(t *testing.T) {
	bound := map[string]float64{ // largest error relative to the largest magnitude of a block of 64
		"f32": 0, "f16": 0x1p-11, "bf16": 0x1p-8, "int8": 0.5 / 127, "int4": 0.5 / 7, "nf4": 0.152, "nf4dq": 0.17,
	}
	for _, name := range FormatNames() {
		f, err := LookupFormat(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 2, 63, 64, 65, 129, 5000} {
			x := testVector(uint64(n), n)
			for b := 0; b*blockLen < n; b++ { // scales as they differ between matrices
				for i := range x[b*blockLen : min((b+1)*blockLen, n)] {
					x[b*blockLen+i] *= 1 + float32(b%7)/7
				}
			}
			var plain []float32
			for _, codec := range CodecNames() {
				msg, err := Compress([]byte("head"), x, name, codec)
				if err != nil {
					t.Fatal(err)
				}
				msg = msg[4:]
				if codec == "none" {
					if got, want := len(msg), f.Size(n)+2+varintLen(n); got != want {
						t.Errorf("%s, n=%d: %d bytes, want %d", name, n, got, want)
					}
				}
				y, err := Decompress(msg, n)
				if err != nil || len(y) != n {
					t.Fatalf("%s with %s, n=%d: %d values, %v", name, codec, n, len(y), err)
				}
				if plain == nil {
					plain = y
				} else if !equalBits(plain, y) {
					t.Errorf("%s with %s, n=%d: the codec changes values", name, codec, n)
				}
				if n > 0 {
					if _, err := Decompress(msg, n-1); !errors.Is(err, ErrCorrupt) {
						t.Errorf("%s, n=%d: limit of %d values: %v", name, n, n-1, err)
					}
				}
			}
			for b := 0; b*blockLen < n; b++ {
				part := x[b*blockLen : min((b+1)*blockLen, n)]
				limit := bound[name]*float64(absMax(part)) + 1e-7
				for i, v := range part {
					if diff := math.Abs(float64(v) - float64(plain[b*blockLen+i])); diff > limit {
						t.Fatalf("%s, n=%d: value %d is off by %g, limit %g", name, n, b*blockLen+i, diff, limit)
					}
				}
			}
		}
	}
}

func varintLen(n int) int {
	k := 1
	for ; n >= 128; n >>= 7 {
		k++
	}
	return k
}

// TestNF4Error measures the error on N(0, 1) in blocks of 64, which the design
// fixes to 0.0728 +- 0.0002; over 2^20 values its standard error is 6e-5.
func TestNF4Error(t *testing.T) {
	x := testVector(12, 1<<20)
	for name, want := range map[string][2]float64{"nf4": {0.0728, 4.5}, "nf4dq": {0.0729, 4.127}} {
		msg, err := Compress(nil, x, name, "")
		if err != nil {
			t.Fatal(err)
		}
		y, err := Decompress(msg, len(x))
		if err != nil {
			t.Fatal(err)
		}
		var sum float64
		for i := range x {
			sum += math.Abs(float64(x[i]) - float64(y[i]))
		}
		if got := sum / float64(len(x)); math.Abs(got-want[0]) > 2e-4 {
			t.Errorf("%s: mean error is %.5f, want %.4f", name, got, want[0])
		}
		if got := 8 * float64(len(msg)) / float64(len(x)); math.Abs(got-want[1]) > 1e-3 {
			t.Errorf("%s: %.4f bits a value, want %.4f", name, got, want[1])
		}
	}
}

// TestDynamicCode compares the lookup with a search over all codes.
func TestDynamicCode(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	check := func(v float32) {
		best := 0
		for i := range dynamicMap {
			if math.Abs(float64(v)-float64(dynamicMap[i])) < math.Abs(float64(v)-float64(dynamicMap[best])) {
				best = i
			}
		}
		got := int(dynamicCode(v))
		// A float32 subtraction may round two distances to the same: the lower code.
		if got != best && !(got == best-1 && abs32(v-dynamicMap[got]) == abs32(v-dynamicMap[best])) {
			t.Fatalf("dynamicCode(%v) = %d, nearest is %d", v, got, best)
		}
	}
	for i := range 256 {
		check(dynamicMap[i])
		check(-dynamicMap[i])
		check((dynamicMap[i] + dynamicMap[(i+1)%256]) / 2)
	}
	for range 20_000 {
		check(float32(2*rnd.Float64() - 1))
		check(float32((2*rnd.Float64() - 1) * math.Pow(10, -8*rnd.Float64())))
	}
}

func abs32(v float32) float32 { return max(v, -v) }

// TestHalf goes through all 65536 halves, and through what is between two.
func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		h := uint16(h)
		if h&0x7c00 == 0x7c00 {
			continue
		}
		v := fromHalf(h)
		if got := toHalf(v); got != h {
			t.Fatalf("half %#04x is %g and comes back as %#04x", h, v, got)
		}
		if up := h + 1; up&0x7c00 != 0x7c00 && up&0x7fff != 0 {
			mid := (v + fromHalf(up)) / 2
			if got := toHalf(mid); got != h+h&1 {
				t.Fatalf("tie %g between %#04x and %#04x becomes %#04x", mid, h, up, got)
			}
			if got := toHalf(math.Nextafter32(mid, v)); got != h {
				t.Fatalf("just before the tie %g becomes %#04x, want %#04x", mid, got, h)
			}
		}
	}
	want := map[uint16]float64{0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: 0x1p-24, 0x03ff: 0x1p-14 - 0x1p-24, 0x3555: 0.333251953125}
	for h, v := range want {
		if got := fromHalf(h); float64(got) != v {
			t.Errorf("half %#04x is %v, want %v", h, got, v)
		}
	}
	if toHalf(65519) != 0x7bff || toHalf(65520) != 0x7c00 || toHalf(1e30) != 0x7c00 {
		t.Error("the end of the range is wrong")
	}
}

func TestCompressRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, name := range FormatNames() {
		for _, bad := range []float32{nan, inf, -inf} {
			for _, n := range []int{1, 64, 65, 200} {
				x := testVector(1, n)
				x[n-1] = bad
				out, err := Compress([]byte("head"), x, name, "zstd")
				if !errors.Is(err, ErrNotFinite) || string(out) != "head" {
					t.Errorf("%s, n=%d: %v gives %v", name, n, bad, err)
				}
			}
		}
	}
	if _, err := Compress(nil, []float32{65520}, "f16", ""); !errors.Is(err, ErrRange) {
		t.Errorf("f16 overflow: %v", err)
	}
	if _, err := Compress(nil, []float32{math.MaxFloat32}, "bf16", ""); !errors.Is(err, ErrRange) {
		t.Errorf("bf16 overflow: %v", err)
	}
	for _, c := range [][2]string{{"nf5", "zstd"}, {"nf4", "gzip"}, {"", ""}} {
		if err := CheckNames(c[0], c[1]); !errors.Is(err, ErrUnknown) {
			t.Errorf("CheckNames(%q, %q): %v", c[0], c[1], err)
		}
		if _, err := Compress(nil, nil, c[0], c[1]); !errors.Is(err, ErrUnknown) {
			t.Errorf("Compress in %q with %q: %v", c[0], c[1], err)
		}
	}
	if err := CheckNames("nf4dq", ""); err != nil {
		t.Error(err)
	}
}

// TestDecompressBounds checks that a few bytes cannot claim a large vector.
func TestDecompressBounds(t *testing.T) {
	huge := []byte{formatF32.id, codecNone.id, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20}
	if _, err := Decompress(huge, 1<<20); !errors.Is(err, ErrCorrupt) {
		t.Errorf("huge length: %v", err)
	}
	if _, err := Decompress(huge, math.MaxInt); !errors.Is(err, ErrCorrupt) {
		t.Errorf("huge length without limit: %v", err)
	}
	x := make([]float32, 1<<16)
	for _, codec := range []string{"snappy", "s2", "zstd"} {
		bomb, err := Compress(nil, x, "f32", codec)
		if err != nil {
			t.Fatal(err)
		}
		// Keep the payload but claim fewer values.
		small := slices.Concat(bomb[:2], []byte{100}, bomb[2+varintLen(len(x)):])
		if _, err := Decompress(small, 1<<20); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: payload larger than announced: %v", codec, err)
		}
	}
}

// FuzzDecompress: whatever decodes is finite and within the limit, and what
// decodes from a format without choices encodes to the same bytes.
func FuzzDecompress(f *testing.F) {
	for _, name := range FormatNames() {
		for _, codec := range CodecNames() {
			msg, err := Compress(nil, testVector(1, 70), name, codec)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(msg)
		}
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		const limit = 1 << 12
		x, err := Decompress(msg, limit)
		if err != nil {
			return
		}
		if len(x) > limit {
			t.Fatalf("%d values", len(x))
		}
		format, codec, _, _, err := parseHeader(msg)
		if err != nil {
			t.Fatal(err)
		}
		switch format.Name() {
		case "f32", "f16", "bf16":
			again, err := Compress(nil, x, format.Name(), codec.Name())
			if err != nil {
				t.Fatalf("decoded values do not encode: %v", err)
			}
			if codec.Name() == "none" && !bytes.Equal(again, msg) {
				t.Fatal("encoding what was decoded gives other bytes")
			}
			y, err := Decompress(again, limit)
			if err != nil || !equalBits(x, y) {
				t.Fatalf("values change on the second way: %v", err)
			}
		default:
			if checkFinite(x) != nil {
				// A hostile scale may overflow; it must then be refused upstream.
				t.Fatal("decoded a value that is not finite")
			}
		}
	})
}

func ExampleCompress() {
	msg, err := Compress(nil, []float32{0.5, -1, 0.25, 0}, "nf4", "none")
	if err != nil {
		panic(err)
	}
	x, err := Decompress(msg, 4)
	fmt.Println(len(msg), x, err)
	// Output: 9 [0.44070983 -1 0.2461123 0] <nil>
}

package quant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"
)

type bitsandbytesGolden struct {
	Cases []struct {
		N            int      `json:"n"`
		Input        string   `json:"input_sha256"`
		Codes        string   `json:"codes_sha256"`
		Scales       string   `json:"absmax_sha256"`
		Values       string   `json:"values_sha256"`
		NestedCodes  string   `json:"nested_codes_sha256"`
		NestedScales []uint32 `json:"nested_absmax_bits"`
		Offset       uint32   `json:"offset_bits"`
		NestedValues []uint32 `json:"nested_values_bits"` // every 97th
	} `json:"cases"`
}

// goldenVector is vector() of lab/bench/quant/nf4.py: exact in float32.
func goldenVector(n int) []float32 {
	x, s := make([]float32, n), uint32(12345)
	for i := range x {
		s = s*1664525 + 1013904223
		x[i] = float32((float64(s>>8)/(1<<24) - 0.5) * math.Ldexp(1, (i/64)*7%11-8) * (1 + float64(i/64%5)/8))
	}
	return x
}

// TestBitsandbytes holds NF4 to what bitsandbytes itself computes, to the bit:
// codes, scales, decoded values, and the codes of doubly quantized scales. The
// mean scale depends on torch's order of summation, and its dynamic map on
// torch.linspace (48 of 256 entries are one unit in the last place away from
// ../nf4/testdata/nf4.json, which is what this package holds): what follows from these
// two agrees within a few units in the last place of the largest scale.
func TestBitsandbytes(t *testing.T) {
	raw, err := os.ReadFile("testdata/bitsandbytes.json")
	if err != nil {
		t.Fatal(err)
	}
	var g bitsandbytesGolden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	hash := func(b []byte) string {
		h := sha256.Sum256(b)
		return hex.EncodeToString(h[:])
	}
	floats := func(x []float32) string {
		d := Digest(x)
		return hex.EncodeToString(d[:])
	}
	for _, c := range g.Cases {
		x := goldenVector(c.N)
		if floats(x) != c.Input {
			t.Fatalf("n=%d: the input differs", c.N)
		}
		packed, y := make([]byte, formatNF4.size(c.N)), make([]float32, c.N)
		if err := formatNF4.encode(packed, x); err != nil {
			t.Fatal(err)
		}
		if err := formatNF4.decode(y, packed); err != nil {
			t.Fatal(err)
		}
		codes := (c.N + 1) / 2
		if hash(packed[:codes]) != c.Codes || hash(packed[codes:]) != c.Scales || floats(y) != c.Values {
			t.Errorf("n=%d: codes, scales or values differ", c.N)
		}
		nested := make([]byte, formatNF4DQ.size(c.N))
		if err := formatNF4DQ.encode(nested, x); err != nil {
			t.Fatal(err)
		}
		if err := formatNF4DQ.decode(y, nested); err != nil {
			t.Fatal(err)
		}
		if hash(nested[:codes]) != c.Codes {
			t.Errorf("n=%d: codes under double quantization differ", c.N)
		}
		tail := nested[codes:]
		if blocks(c.N) > 1 && hash(tail[:blocks(c.N)]) != c.NestedCodes { // one scale alone is its own mean: any code is right
			t.Errorf("n=%d: codes of the scales differ", c.N)
		}
		tail = tail[blocks(c.N):]
		for i, want := range append(c.NestedScales, c.Offset) {
			if got := load32(tail[4*i:], 4); int32(got-want) > 2 || int32(got-want) < -2 {
				t.Errorf("n=%d: nested scale %d is %#x, want %#x", c.N, i, got, want)
			}
		}
		// Small scales are differences of large numbers: the bound is absolute.
		limit := 2e-7 * float64(math.Float32frombits(c.NestedScales[0])+math.Float32frombits(c.Offset))
		for i, bits := range c.NestedValues {
			if want := math.Float32frombits(bits); math.Abs(float64(y[97*i]-want)) > limit {
				t.Errorf("n=%d: value %d under double quantization is %v, want %v", c.N, 97*i, y[97*i], want)
			}
		}
	}
}

package nf4

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"
)

type golden struct {
	Codebook []float64 `json:"codebook"`
	Bounds   []uint32  `json:"bounds_f32_bits"`
	TieRule  []struct {
		Bits uint32 `json:"value_bits"`
		Code byte   `json:"bnb_code"`
	} `json:"tie_rule"`
	Cases []struct {
		N        int      `json:"n"`
		Input    []uint32 `json:"input_f32_bits"`
		Scales   []uint32 `json:"absmax_bits"`
		Packed   string   `json:"packed_hex"`
		MeanErr  float64  `json:"mean_abs_err"`
		MeanSize float64  `json:"mean_abs"`
	} `json:"cases"`
}

// TestGolden holds the format to bitsandbytes, by values that an
// independent program computed.
func TestGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/nf4.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	for i, v := range g.Codebook {
		if float64(Levels[i]) != v {
			t.Errorf("level %d is %v, want %v", i, Levels[i], v)
		}
	}
	for i, v := range g.Bounds {
		if math.Float32bits(bounds[i]) != v {
			t.Errorf("bound %d is %#x, want %#x", i, math.Float32bits(bounds[i]), v)
		}
	}
	for _, tie := range g.TieRule {
		if got := code(math.Float32frombits(tie.Bits)); got != tie.Code {
			t.Errorf("code of midpoint %#x is %d, want %d", tie.Bits, got, tie.Code)
		}
	}
	for _, c := range g.Cases {
		x := make([]float32, c.N)
		for i, b := range c.Input {
			x[i] = math.Float32frombits(b)
		}
		codes, scales := make([]byte, CodesLen(c.N)), make([]float32, Blocks(c.N, Block))
		if err := Encode(codes, scales, x, Block); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(codes); got != c.Packed {
			t.Errorf("n=%d: codes are %s, want %s", c.N, got, c.Packed)
		}
		for i, b := range c.Scales {
			if math.Float32bits(scales[i]) != b {
				t.Errorf("n=%d: scale %d is %v, want %v", c.N, i, scales[i], math.Float32frombits(b))
			}
		}
		y := make([]float32, c.N)
		Decode(y, codes, scales, Block)
		var sum float64
		for i := range x {
			sum += math.Abs(float64(x[i]) - float64(y[i]))
		}
		if got := sum / float64(c.N); math.Abs(got-c.MeanErr) > 1e-6*c.MeanSize {
			t.Errorf("n=%d: mean error is %v, want %v", c.N, got, c.MeanErr)
		}
	}
}

package wasm

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"
)

func TestNF4Golden(t *testing.T) {
	const file = "../../shared/goldens/nf4.json"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("%s: the independent implementation's numbers are not here", file)
	}
	var golden struct {
		Codebook []float32 `json:"codebook"`
		Bounds   []uint32  `json:"bounds_f32_bits"`
		Ties     []struct {
			Bits uint32 `json:"value_bits"`
			Code byte   `json:"bnb_code"`
		} `json:"tie_rule"`
		Cases []struct {
			N         int      `json:"n"`
			Block     int      `json:"blocksize"`
			Input     []uint32 `json:"input_f32_bits"`
			AbsMax    []uint32 `json:"absmax_bits"`
			PackedHex string   `json:"packed_hex"`
		} `json:"cases"`
	}
	check(t, json.Unmarshal(data, &golden))
	for i, v := range golden.Codebook {
		if NF4Levels[i] != v {
			t.Errorf("level %d: %v, want %v", i, NF4Levels[i], v)
		}
	}
	for i, bits := range golden.Bounds {
		if got := math.Float32bits(nf4Middle[i]); got != bits {
			t.Errorf("bound %d: %#x, want %#x", i, got, bits)
		}
	}
	for _, tie := range golden.Ties {
		if got := nf4Code([]float32{math.Float32frombits(tie.Bits)}, 0, 1); got != tie.Code {
			t.Errorf("tie at %v: code %d, want %d", math.Float32frombits(tie.Bits), got, tie.Code)
		}
	}
	if len(golden.Cases) == 0 {
		t.Error("no cases")
	}
	for _, c := range golden.Cases {
		src := make([]float32, c.N)
		for i, bits := range c.Input {
			src[i] = math.Float32frombits(bits)
		}
		codes, scales := make([]byte, NF4CodesSize(c.N)), make([]float32, NF4ScalesLen(c.N, c.Block))
		QuantizeNF4(codes, scales, src, c.Block)
		if got := hex.EncodeToString(codes); got != c.PackedHex {
			t.Errorf("%d values: codes %s, want %s", c.N, got, c.PackedHex)
		}
		for i, bits := range c.AbsMax {
			if math.Float32bits(scales[i]) != bits {
				t.Errorf("%d values: scale %d is %v", c.N, i, scales[i])
			}
		}
	}
}

package quant

import (
	"encoding/json"
	"os"
	"testing"
)

// TestGoldenDynamicMap holds the map of nested scales to what an independent
// program computed.
func TestGoldenDynamicMap(t *testing.T) {
	raw, err := os.ReadFile("nf4/testdata/nf4.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Dynamic []float64 `json:"dynamic_map_8bit_signed"`
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Dynamic) != len(dynamicMap) {
		t.Fatalf("%d entries, want %d", len(g.Dynamic), len(dynamicMap))
	}
	for i, v := range g.Dynamic {
		if dynamicMap[i] != float32(v) {
			t.Errorf("entry %d is %v, want %v", i, dynamicMap[i], v)
		}
	}
}

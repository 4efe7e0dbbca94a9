package nn

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestLogitsMatchTransformers holds checkpoints that transformers has saved, one of
// every architecture, to the logits that it computes: on the Go backend and as a
// compiled program.
func TestLogitsMatchTransformers(t *testing.T) {
	for _, kind := range []string{"bert", "roberta", "distilbert"} {
		dir := filepath.Join("testdata", kind)
		base, err := model.LoadBaseDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		head, err := model.LoadHead(os.DirFS(dir), base.Config)
		if err != nil {
			t.Fatal(err)
		}
		adapter, err := model.HeadAdapter(base.Config, 3, head)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Tokens [][]int32
			Logits [][]float64
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		seq := len(want.Tokens[0])
		plain, err := NewPredictor(adapter.Layout(), base, seq, nil)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := NewPredictor(adapter.Layout(), base, seq, compiler.New())
		if err != nil {
			t.Fatal(err)
		}
		for name, p := range map[string]*Predictor{"Go": plain, "compiled": compiled} {
			for _, rank := range []int{0, 1} { // LoRA's product is zero
				got, err := p.Logits(t.Context(), adapter.Slice(rank), rank, want.Tokens)
				if err != nil {
					t.Fatal(err)
				}
				worst, size := 0.0, 0.0
				for i, row := range want.Logits {
					for j, x := range row {
						worst, size = math.Max(worst, math.Abs(x-float64(got[i][j]))), math.Max(size, math.Abs(x))
					}
				}
				if !(worst <= 1e-5*size) {
					t.Errorf("%s, %s, rank %d: logits differ by %v of %v", kind, name, rank, worst, size)
				}
			}
		}
	}
}

package nn

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// vt5Golden is what lab/bench/interop/vt5.py wrote of one model.
type vt5Golden struct {
	Tokens, Boxes, Decoder, Targets [][]int32
	Levels                          [][]float32 // of 256, of each page's picture
	Logits                          [][]float64
	Loss                            float64
	Values, Gradients               map[string][]float64

	base *model.Base
}

var vt5Models = []string{"dit", "each", "shared", "patches", "overlap"}

func readVT5(t *testing.T, name string) (g vt5Golden) {
	t.Helper()
	dir := filepath.Join("testdata", "vt5", name)
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	if g.base, err = model.LoadBaseDir(dir); err != nil {
		t.Fatal(err)
	}
	return g
}

// spec is a step of LoRA and of what is trained whole.
func (g vt5Golden) spec() StepSpec {
	also := "x_position_embeddings,y_position_embeddings,spatial_embedding.LayerNorm,spatial_emb_matcher,visual_emb_matcher"
	if g.base.Config.T5.Patched.On() {
		also = "spatial_emb_matcher,patch_embed.proj"
	}
	m := model.Method{RMax: 2, Alpha: 3, Task: model.TaskAnswer, Answer: len(g.Decoder[0]), Also: also}
	return StepSpec{Config: g.base.Config, Method: m, Rank: 2, Spec: training.Spec{Batch: len(g.Tokens), Optimizer: training.SGD}, Sequence: len(g.Tokens[0])}
}

// rows are the golden's examples; pages go through the columns' own way from a picture, white ones where blank.
func (g vt5Golden) rows(t *testing.T, lay *model.Layout, blank bool) task.Batch {
	t.Helper()
	b := t5Batch(t, lay, g.Tokens, g.Decoder)
	v, _ := g.base.Config.T5.Page()
	n := len(b.Float32(task.Patches)) / len(g.Tokens)
	for i := range g.Tokens {
		copy(b.Int32(task.Boxes)[i*len(g.Boxes[i]):], g.Boxes[i])
		m := &dataset.Image{Width: v.ImageSize.Width, Height: v.ImageSize.Height, Channels: v.Channels}
		for _, x := range g.Levels[i] {
			if blank {
				x = 255
			}
			m.Pixels = append(m.Pixels, x/255)
		}
		if err := task.Pixels(m, v, b.Float32(task.Patches)[i*n:(i+1)*n]); err != nil {
			t.Fatal(err)
		}
		for j, id := range g.Targets[i] {
			if at := i*len(g.Targets[i]) + j; id >= 0 {
				b.Int32(task.Labels)[at], b.Float32(task.Weights)[at] = id, 1
			}
		}
	}
	return b
}

// A T5 with boxes and a BEiT behind its tokens, under the published VT5's names, or with the page's own patches, gives
// transformers' logits on the Go backend and as compiled programs, and others where its pages are blank.
func TestVT5LogitsMatchTransformers(t *testing.T) {
	for _, name := range vt5Models {
		g := readVT5(t, name)
		lay, err := g.spec().Layout()
		if err != nil {
			t.Fatal(name, err)
		}
		for backend, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
			writer, err := NewGenerator(lay, g.base, len(g.Tokens[0]), be)
			if err != nil {
				t.Fatal(name, err)
			}
			adapter := model.NewAdapter(lay, 1).Slice(2)
			got, err := writer.Logits(t.Context(), adapter, 2, g.rows(t, lay, false))
			if err != nil {
				t.Fatal(name, err)
			}
			sameLogits(t, name+", "+backend, got, g.Logits)
			blank, err := writer.Logits(t.Context(), adapter, 2, g.rows(t, lay, true))
			if err != nil {
				t.Fatal(name, err)
			}
			for i := range blank {
				moved := 0.0
				for j := range blank[i] {
					moved = math.Max(moved, math.Abs(float64(blank[i][j]-got[i][j])))
				}
				if moved < 0.01 {
					t.Errorf("%s, %s: a blank page moves the logits of document %d by %v", name, backend, i, moved)
				}
			}
		}
	}
}

// One step of plain descent moves LoRA, the matchers, patches and boxes as PEFT's gradients do, and nothing of the page's encoder: on
// the Go backend and in a program as devices run it.
func TestVT5GradientsMatchPEFT(t *testing.T) {
	for _, name := range vt5Models {
		g := readVT5(t, name)
		s := g.spec()
		lay, err := s.Layout()
		if err != nil {
			t.Fatal(name, err)
		}
		v := make([]float32, lay.Size(2))
		for _, span := range lay.Spans(2) {
			if given := g.Values[span.Name]; span.Kind != model.KindDelta && len(given) != span.Len {
				t.Fatalf("%s: %s has %d values, want %d", name, span.Name, len(given), span.Len)
			}
			for i, x := range g.Values[span.Name] {
				v[span.Offset+i] = float32(x)
			}
		}
		for backend, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
			tr, err := NewTrainerOn(be, s, g.base, map[string]compute.Buffer{})
			if err != nil {
				t.Fatal(name, backend, err)
			}
			delta, losses, err := tr.Train(t.Context(), v, []task.Batch{g.rows(t, lay, false)}, 1)
			if err != nil {
				t.Fatal(name, backend, err)
			}
			if d := math.Abs(float64(losses[0]) - g.Loss); d > 1e-4 {
				t.Errorf("%s, %s: loss %v, want %v", name, backend, losses[0], g.Loss)
			}
			for _, span := range lay.Spans(2) {
				want := g.Gradients[strings.TrimSuffix(span.Name, model.DeltaSuffix)]
				if len(want) != span.Len {
					t.Fatalf("%s, %s: %s has %d gradients, want %d", name, backend, span.Name, len(want), span.Len)
				}
				size := 0.0
				for _, x := range want {
					size = math.Max(size, math.Abs(x))
				}
				for i, x := range want {
					if d := math.Abs(float64(delta[span.Offset+i]) + x); d > 1e-4*math.Max(size, 1e-2) {
						t.Errorf("%s, %s: %s: gradient %d is %v, want %v", name, backend, span.Name, i, -delta[span.Offset+i], x)
						break
					}
				}
			}
		}
	}
}

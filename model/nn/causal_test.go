package nn

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/peft"
	"github.com/starling-fl/starling/wasm/compiler"
)

// causalGolden is what transformers and PEFT computed of one family (lab/bench/interop/causal.py).
type causalGolden struct {
	Tokens  [][]int32
	Counted [][]int
	Logits  [][]float64 // of every place but the last, of the base
	Adapted [][]float64 // with the adapter
	Loss    float64     // with the adapter, mean over the places that count
	Written []struct {
		Prompt, Tokens []int32
		Scores         []float64 // of every token to be the last
	}
}

var causalFamilies = []string{"gpt2", "llama", "llama-3", "mistral", "qwen2", "qwen3", "gemma3_text"}

func loadCausal(t testing.TB, name string) (dir string, base *model.Base, want causalGolden) {
	t.Helper()
	dir = filepath.Join("testdata", "causal", name)
	base, err := model.LoadBaseDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err == nil {
		err = json.Unmarshal(data, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, base, want
}

// batch tells the next token of every place, or of those that count.
func (w causalGolden) batch(t testing.TB, l *model.Layout, counted bool) task.Batch {
	t.Helper()
	seq := len(w.Tokens[0])
	columns, err := task.Columns(l, seq)
	if err != nil {
		t.Fatal(err)
	}
	b := task.NewBatch(columns, len(w.Tokens))
	for r, row := range w.Tokens {
		copy(b.Int32(task.Tokens)[r*seq:], row)
		n := r * (seq - 1)
		for i := range seq - 1 {
			if counted && w.Counted[r][i] == 0 {
				continue
			}
			b.Int32(task.Places)[n], b.Int32(task.Labels)[n], b.Float32(task.Weights)[n] = int32(i), row[i+1], 1
			n++
		}
	}
	return b
}

// Logits are transformers' on checkpoints that it has saved (tied and own heads, f32, f16,
// bf16, shards), with PEFT's adapters too, on the Go backend and as compiled programs.
func TestCausalLogitsMatchTransformers(t *testing.T) {
	for _, name := range causalFamilies {
		t.Run(name, func(t *testing.T) {
			dir, base, want := loadCausal(t, name)
			adapter, err := peft.Load(os.DirFS(filepath.Join(dir, "adapter")), base, model.TaskCausal, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			l := adapter.Layout()
			in := want.batch(t, l, false)
			for backend, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
				p, err := NewPredictor(l, base, len(want.Tokens[0]), be)
				if err != nil {
					t.Fatal(err)
				}
				for rank, logits := range map[int][][]float64{0: want.Logits, l.Method.RMax: want.Adapted} {
					got, err := p.Outputs(t.Context(), adapter.Slice(rank), rank, in, len(want.Tokens))
					if err != nil {
						t.Fatal(err)
					}
					sameLogits(t, backend, got, logits)
				}
			}
		})
	}
}

// Loss and gradients are PEFT's: of a step of plain gradient descent, which moves by their
// negative.
func TestCausalGradientsMatchPEFT(t *testing.T) {
	for _, name := range causalFamilies {
		t.Run(name, func(t *testing.T) {
			dir, base, want := loadCausal(t, name)
			adapter, err := peft.Load(os.DirFS(filepath.Join(dir, "adapter")), base, model.TaskCausal, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			l := adapter.Layout()
			rank := l.Method.RMax
			data, err := os.ReadFile(filepath.Join(dir, "gradients.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			gradients, err := model.ParseAdapter(l, data)
			if err != nil {
				t.Fatal(err)
			}
			s := StepSpec{Config: base.Config, Method: l.Method, Rank: rank, Spec: training.Spec{Batch: len(want.Tokens), Optimizer: training.SGD}, Sequence: len(want.Tokens[0])}
			step, err := NewTrainer(s, base)
			if err != nil {
				t.Fatal(err)
			}
			delta, losses, err := step.Train(t.Context(), adapter.Slice(rank), []task.Batch{want.batch(t, l, true)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if d := math.Abs(float64(losses[0]) - want.Loss); !(d < 1e-5) {
				t.Errorf("loss is %v, want %v", losses[0], want.Loss)
			}
			worst, largest := 0.0, 0.0
			for i, g := range gradients.Slice(rank) {
				worst, largest = max(worst, math.Abs(float64(delta[i]+g))), max(largest, math.Abs(float64(g)))
			}
			if !(worst < 1e-4 && largest > 1e-2) {
				t.Errorf("gradients differ by %v, of %v at most", worst, largest)
			}
		})
	}
}

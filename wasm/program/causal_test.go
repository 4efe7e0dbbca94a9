package program

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm"
)

// causal is a tiny checkpoint of transformers', with two texts.
func causal(t *testing.T, family string) (*model.Base, job.Job, task.Batch, *model.Layout) {
	t.Helper()
	dir := filepath.Join("..", "..", "model", "nn", "testdata", "causal", family)
	base, err := model.LoadBaseDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var texts struct{ Tokens [][]int32 }
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err == nil {
		err = json.Unmarshal(data, &texts)
	}
	if err != nil {
		t.Fatal(err)
	}
	j := job.Default()
	j.Name, j.Task, j.Labels = family, model.TaskCausal.String(), nil
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 4, Alpha: 4, Sequence: len(texts.Tokens[0]), Targets: []string{model.AllLinear}}
	j.Training = job.Training{Steps: 1, Batch: 2, Optimizer: "sgd", LearningRate: 0.1}
	l, err := model.NewLayout(base.Config, j.Method(), 0)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := task.Columns(l, j.Adapter.Sequence)
	if err != nil {
		t.Fatal(err)
	}
	b := task.NewBatch(columns, 2)
	for r, row := range texts.Tokens[:2] {
		copy(b.Int32(task.Tokens)[r*len(row):], row)
		for i := range len(row) - 1 - 3*r { // the second is shorter
			k := r*(len(row)-1) + i
			b.Int32(task.Places)[k], b.Int32(task.Labels)[k], b.Float32(task.Weights)[k] = int32(i), row[i+1], 1
		}
	}
	return base, j, b, l
}

// runStep runs a program's step, and returns what changed and the loss.
func runStep(t *testing.T, code []byte, base *model.Base, l *model.Layout, rank int, b task.Batch, start []float32) ([]float32, float32) {
	t.Helper()
	p, err := wasm.Load(t.Context(), code, wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	in, err := p.NewInstance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	fill(t, in, base, l, rank, b, start)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(in.Step(context.Background()))
	delta := make([]float32, len(start))
	for _, s := range l.Spans(rank) {
		must(in.ReadFloat32(s.Name, delta[s.Offset:s.Offset+s.Len]))
	}
	for i, x := range start {
		delta[i] -= x
	}
	loss := make([]float32, 1)
	must(in.ReadFloat32(trainer.OutputLoss, loss))
	return delta, loss[0]
}

// fill writes what a step reads.
func fill(t *testing.T, in *wasm.Instance, base *model.Base, l *model.Layout, rank int, b task.Batch, start []float32) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range in.Program().Manifest().Frozen {
		v, err := base.Tensor(f.Name)
		must(err)
		if codes, scales, stored, err := base.StoredNF4(f.Name); err == nil && stored && f.NF4 != nil {
			must(in.WriteFrozenNF4(f.Name, codes, scales))
			continue
		}
		must(in.WriteFrozen(f.Name, v))
	}
	for _, v := range b {
		if v.Type == task.F32 {
			must(in.WriteFloat32(v.Name, v.F32))
		} else {
			must(in.WriteInt32(v.Name, v.I32))
		}
	}
	must(in.WriteFloat32(trainer.InputRate, []float32{1}))
	must(in.WriteFloat32(trainer.InputStep, []float32{1}))
	for _, s := range l.Spans(rank) {
		must(in.WriteFloat32(s.Name, start[s.Offset:s.Offset+s.Len]))
	}
}

// A decoder's programs train as GoMLX does on the host: all linear maps, exact and fused,
// over floats and over 4-bit codes; those for both hosts to the bit.
func TestCausalPrograms(t *testing.T) {
	for _, family := range []string{"llama", "llama-3", "mistral", "qwen2", "qwen3", "gemma3_text"} {
		for _, format := range []model.Format{model.F32, model.NF4} {
			t.Run(fmt.Sprintf("%s %s", family, format), func(t *testing.T) {
				base, j, batch, l := causal(t, family)
				if format == model.NF4 {
					var err error
					if base, err = base.Pack(); err != nil {
						t.Fatal(err)
					}
				}
				const rank = 2
				a := model.NewAdapter(l, 3)
				start := a.Slice(rank)
				for i := range start { // no half is zero
					start[i] += float32(i%7-3) / 50
				}
				spec := Spec{Job: j, Base: base, Rank: rank, Compact: map[string]bool{}}
				if format == model.NF4 {
					spec.Compact = Compactable(base)
				}
				step, err := nn.NewTrainer(stepOf(j, base, 0, rank), base)
				if err != nil {
					t.Fatal(err)
				}
				want, losses, err := step.Train(t.Context(), start, []task.Batch{batch}, 1)
				if err != nil {
					t.Fatal(err)
				}
				var exact []float32
				for _, host := range Hosts {
					for _, arithmetic := range []string{job.Exact, job.Fused} {
						if host != Hosts[0] && arithmetic == job.Fused {
							continue // relaxed SIMD, which a browser alone runs
						}
						spec.Host, spec.Job.Training.Arithmetic = host, arithmetic
						code, err := Step(spec)
						if err != nil {
							t.Fatal(err)
						}
						got, loss := runStep(t, code, base, l, rank, batch, start)
						if d := math.Abs(float64(loss - losses[0])); !(d < 1e-5) {
							t.Errorf("%s, %s: loss %v, want %v", host, arithmetic, loss, losses[0])
						}
						worst, largest := 0.0, 0.0
						for i := range got {
							worst, largest = max(worst, math.Abs(float64(got[i]-want[i]))), max(largest, math.Abs(float64(want[i])))
						}
						if !(worst < 2e-5 && largest > 1e-2) {
							t.Errorf("%s, %s: the update differs by %v, of %v at most", host, arithmetic, worst, largest)
						}
						if arithmetic != job.Exact {
							continue
						}
						if exact == nil {
							exact = got
						}
						if !slices.Equal(exact, got) {
							t.Errorf("%s: other bits than %s", host, Hosts[0])
						}
					}
				}
			})
		}
	}
}

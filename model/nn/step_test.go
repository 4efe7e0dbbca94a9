package nn

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend" // the reference
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/leaf/untrained"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
)

func testBase(t testing.TB, c model.Config) *model.Base {
	t.Helper()
	b, err := model.NewBase(c, untrained.Tensors(c, 5, 0.3), []byte("{}"), model.F32)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func testSpec(rank int) StepSpec {
	return StepSpec{Config: model.BERT(40, 16, 2, 2, 12), Method: model.Method{RMax: 4, Alpha: 4}, Classes: 3,
		Rank: rank, Spec: training.Spec{Batch: 4, Optimizer: training.SGD}, Sequence: 12}
}

// emptyBatch is a batch of a step without weight.
func emptyBatch(s StepSpec) trainer.Batch {
	lay, err := s.Layout()
	if err != nil {
		panic(err)
	}
	columns, err := task.Columns(lay, s.Sequence)
	if err != nil {
		panic(err)
	}
	return task.NewBatch(columns, s.Batch)
}

// testBatches makes rows in which the class is the token that follows the
// first one, of different lengths.
func testBatches(s StepSpec, n int) []trainer.Batch {
	var out []trainer.Batch
	for i := range n {
		b := emptyBatch(s)
		for r := range s.Batch {
			class := (i + r*2) % s.Classes
			row := b.Int32(task.Tokens)[r*s.Sequence:]
			row[0], row[1] = 2, int32(10+class)
			for k := 2; k < s.Sequence-r; k++ {
				row[k] = int32(20 + (i*7+r*5+k*3)%20)
			}
			b.Int32(task.Labels)[r], b.Float32(task.Weights)[r] = int32(class), 1
		}
		out = append(out, b)
	}
	return out
}

func slice(t testing.TB, s StepSpec) []float32 {
	t.Helper()
	l, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	return model.NewAdapter(l, 11).Slice(s.Rank)
}

// TestGradientMatchesDifferences holds the whole step, backward included,
// against finite differences of its own loss.
func TestGradientMatchesDifferences(t *testing.T) {
	s := testSpec(2)
	tr, err := NewTrainer(s, testBase(t, s.Config))
	if err != nil {
		t.Fatal(err)
	}
	start := slice(t, s)
	for i := range start { // away from the zero product and the zero head
		start[i] += 0.2 * float32(math.Sin(float64(i)*1.7))
	}
	batch := testBatches(s, 1)
	loss := func(v []float32) float64 {
		_, l, err := tr.Train(context.Background(), v, batch, 0)
		if err != nil {
			t.Fatal(err)
		}
		return float64(l[0])
	}
	delta, _, err := tr.Train(context.Background(), start, batch, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(start); i += 13 {
		const h = 1e-2
		v := slices.Clone(start)
		v[i] += h
		up := loss(v)
		v[i] -= 2 * h
		numeric := (up - loss(v)) / (2 * h)
		if got := -float64(delta[i]); math.Abs(got-numeric) > 2e-3+0.02*math.Abs(numeric) {
			t.Errorf("value %d: gradient %v, differences give %v", i, got, numeric)
		}
	}
}

// TestOptimizersMatchTheirFormulas replays each update on the host from the
// gradients that SGD reveals.
func TestOptimizersMatchTheirFormulas(t *testing.T) {
	base := testBase(t, testSpec(1).Config)
	train := func(o string, decay float64, start []float32, batches []trainer.Batch, lr float32) []float32 {
		s := testSpec(1)
		s.Optimizer, s.WeightDecay = o, decay
		tr, err := NewTrainer(s, base)
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := tr.Train(context.Background(), start, batches, lr)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	const lr, decay = 0.05, 0.1
	batches := testBatches(testSpec(1), 2)
	for _, o := range []string{training.Momentum, training.AdamW} {
		start := slice(t, testSpec(1))
		x := slices.Clone(start)
		m, v := make([]float64, len(x)), make([]float64, len(x))
		for i, b := range batches {
			g := train(training.SGD, 0, x, []trainer.Batch{b}, 1) // minus the gradient
			for j := range x {
				grad := -float64(g[j])
				if o == training.Momentum {
					m[j] = momentumBeta*m[j] + grad
					x[j] -= float32(lr * m[j])
					continue
				}
				m[j] = adamBeta1*m[j] + (1-adamBeta1)*grad
				v[j] = adamBeta2*v[j] + (1-adamBeta2)*grad*grad
				mh := m[j] / (1 - math.Pow(adamBeta1, float64(i+1)))
				vh := v[j] / (1 - math.Pow(adamBeta2, float64(i+1)))
				x[j] -= float32(lr * (mh/(math.Sqrt(vh)+adamEps) + decay*float64(x[j])))
			}
		}
		got := train(o, decay, start, batches, lr)
		if o == training.Momentum {
			got = train(o, 0, start, batches, lr)
		}
		worst := 0.0
		for j := range x {
			worst = max(worst, math.Abs(float64(start[j]+got[j]-x[j])))
		}
		// Adam divides by the gradient's own size: rounding of tiny
		// gradients shows, up to a share of lr.
		if worst > 0.02*lr {
			t.Errorf("%s: off by %v", o, worst)
		}
	}
}

func TestWeightsAndPaddingCarryNothing(t *testing.T) {
	s := testSpec(2)
	base := testBase(t, s.Config)
	tr, err := NewTrainer(s, base)
	if err != nil {
		t.Fatal(err)
	}
	full := testBatches(s, 1)[0]
	copy(full.Float32(task.Weights), []float32{1, 1, 0, 0})
	a, la, err := tr.Train(context.Background(), slice(t, s), []trainer.Batch{full}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	// The same two examples, the others gone.
	cut := full.Clone()
	clear(cut.Int32(task.Tokens)[2*s.Sequence:])
	clear(cut.Int32(task.Labels)[2:])
	b, lb, err := tr.Train(context.Background(), slice(t, s), []trainer.Batch{cut}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	if la[0] != lb[0] || !slices.Equal(a, b) {
		t.Errorf("rows of weight 0 change the update: loss %v and %v", la[0], lb[0])
	}
	none := cut.Clone()
	clear(none.Float32(task.Weights))
	d, l, err := tr.Train(context.Background(), slice(t, s), []trainer.Batch{none}, 0.5)
	if err != nil || l[0] != 0 || slices.ContainsFunc(d, func(x float32) bool { return x != 0 }) {
		t.Errorf("a batch without weight: loss %v, %v", l, err)
	}
	// Padding: a shorter sequence length gives the same logits.
	lay, _ := s.Layout()
	short := []int32{2, 10, 20, 21, 3, 0}
	long := append(slices.Clone(short), 0, 0, 0, 0, 0, 0)
	logits := func(seq int, row []int32) []float32 {
		p, err := NewPredictor(lay, base, seq, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Logits(context.Background(), slice(t, s), s.Rank, [][]int32{row})
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	x, y := logits(6, short), logits(12, long)
	for i := range x {
		if math.Abs(float64(x[i]-y[i])) > 1e-5 {
			t.Errorf("padding changes the logits: %v and %v", x, y)
		}
	}
}

// TestEveryRankLearns is the promise of the default alpha and learning rate:
// the local loss falls at rank 1 and at r_max, with either optimizer.
func TestEveryRankLearns(t *testing.T) {
	for _, o := range []string{training.SGD, training.AdamW} {
		for _, rank := range []int{0, 1, 8} {
			c := model.BERT(40, 32, 2, 2, 12)
			d := job.DefaultLocal(o, c, model.Method{RMax: 8})
			s := StepSpec{Config: c, Method: model.Method{RMax: 8, Alpha: d.Alpha}, Classes: 3,
				Rank: rank, Spec: training.Spec{Batch: 8, Optimizer: o, LearningRate: d.LearningRate, HeadLearningRate: d.HeadLearningRate}, Sequence: 12}
			tr, err := NewTrainer(s, testBase(t, s.Config))
			if err != nil {
				t.Fatal(err)
			}
			batches := testBatches(s, 3)
			var losses []float32
			v := slice(t, s)
			for range 10 {
				delta, l, err := tr.Train(context.Background(), v, batches, float32(d.LearningRate))
				if err != nil {
					t.Fatal(err)
				}
				losses = append(losses, l...)
				for i := range v {
					v[i] += delta[i]
				}
			}
			first, last := mean(losses[:3]), mean(losses[len(losses)-3:])
			if !(last < 0.9*first) {
				t.Errorf("%s at rank %d: loss %v -> %v", o, rank, first, last)
			}
		}
	}
}

func mean(v []float32) (m float64) {
	for _, x := range v {
		m += float64(x) / float64(len(v))
	}
	return m
}

// TestDyLoRAGolden puts the golden of the DyLoRA reference through the
// encoder's own adapted layer and GoMLX's autodiff.
func TestDyLoRAGolden(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "dylora.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		RMax    int         `json:"r_max"`
		Alpha   float64     `json:"alpha"`
		A, B    [][]float32 `json:",omitempty"`
		X       []float32   `json:"x"`
		GradOut []float32   `json:"grad_out"`
		Ranks   []struct {
			B       int         `json:"b"`
			Scaling float64     `json:"effective_scaling"`
			DeltaY  []float32   `json:"delta_y"`
			GradA   [][]float32 `json:"gradA_full"`
			GradB   [][]float32 `json:"gradB_full"`
		} `json:"ranks"`
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	in, out := len(golden.X), len(golden.GradOut)
	lora := model.Method{RMax: golden.RMax, Alpha: golden.Alpha}
	for _, r := range golden.Ranks {
		if lora.Scale(r.B) != r.Scaling {
			t.Errorf("rank %d: scale %v, want %v", r.B, lora.Scale(r.B), r.Scaling)
		}
		var a, b, wantA, wantB []float32
		for i := range r.B {
			a = append(a, golden.A[i]...)
			wantA = append(wantA, r.GradA[i]...)
		}
		for i := range out {
			b = append(b, golden.B[i][:r.B]...)
			wantB = append(wantB, r.GradB[i][:r.B]...)
			for _, g := range r.GradB[i][r.B:] {
				if g != 0 {
					t.Fatal("the golden trains columns beyond b")
				}
			}
		}
		prog, err := Compile(nil, "golden", func(g *graph.Graph) ([]Param, []Output, error) {
			p := newParams(g)
			x := p.add("x", Input, dtypes.Float32, 1, in)
			an := p.add("m.lora_A.weight", State, dtypes.Float32, r.B, in)
			bn := p.add("m.lora_B.weight", State, dtypes.Float32, out, r.B)
			go_ := p.add("grad_out", Input, dtypes.Float32, 1, out)
			e := encoder{cfg: model.Config{HiddenSize: out}, scale: lora.Scale(r.B), params: p}
			y := e.dense(x, "m", out)
			grads := graph.Gradient(graph.ReduceAllSum(graph.Mul(y, go_)), an, bn)
			return p.list, []Output{{Node: y}, {Node: grads[0]}, {Node: grads[1]}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		values := map[string][]float32{"x": golden.X, "m.lora_A.weight": a, "m.lora_B.weight": b,
			"grad_out": golden.GradOut, "m.weight": make([]float32, in*out), "m.bias": make([]float32, out)}
		var buffers []compute.Buffer
		for _, p := range prog.Params {
			buf, err := prog.Buffer(p, values[p.Name])
			if err != nil {
				t.Fatal(err)
			}
			buffers = append(buffers, buf)
		}
		res, err := prog.Run(buffers)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]float32{r.DeltaY, wantA, wantB} {
			got, err := Floats(res[i], len(want))
			if err != nil {
				t.Fatal(err)
			}
			for j := range want {
				if math.Abs(float64(got[j]-want[j])) > 1e-5 {
					t.Errorf("rank %d, %s: %v, want %v", r.B, []string{"delta_y", "gradA", "gradB"}[i], got, want)
					break
				}
			}
		}
	}
}

func TestTrainerRefuses(t *testing.T) {
	s := testSpec(1)
	base := testBase(t, s.Config)
	wider := s
	wider.Config.IntermediateSize *= 2
	var shape *model.ShapeError
	if _, err := NewTrainer(wider, base); !errors.As(err, &shape) || shape.Tensor != "encoder.layer.0.intermediate.dense.weight" {
		t.Errorf("a base that does not fit: got %v", err)
	}
	for name, f := range map[string]func(*StepSpec){
		"rank": func(s *StepSpec) { s.Rank = 5 }, "batch": func(s *StepSpec) { s.Batch = 0 },
		"seq": func(s *StepSpec) { s.Sequence = 13 }, "optimizer": func(s *StepSpec) { s.Optimizer = "lion" },
		"weight decay": func(s *StepSpec) { s.WeightDecay = -1 },
	} {
		bad := s
		f(&bad)
		if _, err := NewTrainer(bad, base); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	tr, err := NewTrainer(s, base)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(b *trainer.Batch, v *[]float32){
		"label": func(b *trainer.Batch, _ *[]float32) { b.Int32(task.Labels)[1] = 3 }, "token": func(b *trainer.Batch, _ *[]float32) { b.Int32(task.Tokens)[0] = 40 },
		"tokens": func(b *trainer.Batch, _ *[]float32) { (*b)[0].I32 = (*b)[0].I32[1:] }, "labels": func(b *trainer.Batch, _ *[]float32) { (*b)[1].I32 = nil },
		"adapter": func(_ *trainer.Batch, v *[]float32) { *v = (*v)[1:] },
	} {
		b, v := testBatches(s, 1)[0], slice(t, s)
		f(&b, &v)
		if _, _, err := tr.Train(context.Background(), v, []trainer.Batch{b}, 0.1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := tr.Train(ctx, slice(t, s), testBatches(s, 1), 0.1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// Texts of all lengths in one call, in any order, get the logits that each gets
// by itself.
func TestPredictorBatchesByLength(t *testing.T) {
	s := testSpec(2)
	lay, _ := s.Layout()
	p, err := NewPredictor(lay, testBase(t, s.Config), s.Sequence, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]int32
	for i := range 3*predictBatch + 5 {
		row := make([]int32, s.Sequence)
		for j := range 1 + i*7%s.Sequence {
			row[j] = int32(2 + (i*5+j*3)%20)
		}
		rows = append(rows, row)
	}
	rows = append(rows, make([]int32, s.Sequence)) // empty
	all, err := p.Logits(context.Background(), slice(t, s), s.Rank, rows)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		alone, err := p.Logits(context.Background(), slice(t, s), s.Rank, [][]int32{row})
		if err != nil {
			t.Fatal(err)
		}
		for c := range alone[0] {
			if math.Abs(float64(alone[0][c]-all[i][c])) > 1e-5 {
				t.Fatalf("text %d: %v among others, %v alone", i, all[i], alone[0])
			}
		}
	}
	if n := len(p.programs); n > 8 {
		t.Errorf("%d programs", n)
	}
}

// TestPredictorAgreesWithTheStep compares the merged forward pass with the
// step's own loss at every rank.
func TestPredictorAgreesWithTheStep(t *testing.T) {
	for rank := 0; rank <= 4; rank++ {
		s := testSpec(rank)
		base := testBase(t, s.Config)
		tr, err := NewTrainer(s, base)
		if err != nil {
			t.Fatal(err)
		}
		v := slice(t, s)
		for i := range v {
			v[i] += 0.2 * float32(math.Cos(float64(i)))
		}
		batch := testBatches(s, 1)
		_, losses, err := tr.Train(context.Background(), v, batch, 0)
		if err != nil {
			t.Fatal(err)
		}
		lay, _ := s.Layout()
		p, err := NewPredictor(lay, base, s.Sequence, nil)
		if err != nil {
			t.Fatal(err)
		}
		var rows [][]int32
		for r := range s.Batch {
			rows = append(rows, batch[0].Int32(task.Tokens)[r*s.Sequence:(r+1)*s.Sequence])
		}
		logits, err := p.Logits(context.Background(), v, rank, rows)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for r, l := range logits {
			sum := 0.0
			for _, x := range l {
				sum += math.Exp(float64(x))
			}
			want += (math.Log(sum) - float64(l[batch[0].Int32(task.Labels)[r]])) / float64(s.Batch)
		}
		if math.Abs(want-float64(losses[0])) > 1e-4 {
			t.Errorf("rank %d: predictor's loss %v, step's %v", rank, want, losses[0])
		}
		again, err := p.Logits(context.Background(), v, rank, rows)
		if err != nil || !slices.Equal(again[1], logits[1]) {
			t.Errorf("rank %d: two calls differ (%v)", rank, err)
		}
	}
}

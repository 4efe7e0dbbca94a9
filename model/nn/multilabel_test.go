package nn

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// Loss and gradients are PyTorch's binary_cross_entropy_with_logits(z, y, reduction="none").mean(1),
// weighted: at scores where exp overflows, too.
func TestBinarySurprise(t *testing.T) {
	scores := []float32{2, -1, .5, -30, 40, 0, 1.5, 1.5, -2}
	want := []float64{0.4714222848415375, 13.56438159942627, 0.8432515263557434}
	slope := []float64{-0.009933581575751305, 0.022411786019802094, 0.051871612668037415, 7.798019940549478e-15, 0.0833333358168602,
		-0.0416666679084301, -0.030404260382056236, -0.030404260382056236, -0.14679951965808868}
	prog, err := Compile(nil, "bce", func(g *graph.Graph) ([]Param, []Output, error) {
		p := newParams(g)
		z := p.add("z", Input, dtypes.Float32, 3, 3)
		y := graph.Const(g, [][]float32{{1, 0, 0}, {0, 0, 1}, {1, 1, 1}})
		each := elementary{}.binarySurprise(z, y)
		loss := weightedMean(each, graph.Const(g, []float32{1, 1, 2}))
		return p.list, []Output{{Name: "each", Node: each}, {Name: "slope", Node: graph.Gradient(loss, z)[0]}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	in, err := prog.Buffer(prog.Params[0], scores)
	if err != nil {
		t.Fatal(err)
	}
	res, err := prog.Run([]compute.Buffer{in})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range [][]float64{want, slope} {
		got, err := Floats(res[i], len(w))
		if err != nil {
			t.Fatal(err)
		}
		for k := range w {
			if math.Abs(float64(got[k])-w[k]) > 1e-6*(1+math.Abs(w[k])) {
				t.Errorf("%d: %v at %d, want %v", i, got[k], k, w[k])
			}
		}
	}
	for i, right := range [][]int{{0}, {2}, {0, 1, 2}} { // as the scores of a checkpoint are measured
		if got := task.AnyOf.Loss(scores[3*i:3*i+3], right); math.Abs(got-want[i]) > 1e-6*want[i] {
			t.Errorf("AnyOf.Loss of %d: %v, want %v", i, got, want[i])
		}
	}
}

// A model learns labels that go together and those that exclude each other; the loss of a
// step is what the predictor's scores have.
func TestMultiLabelLearns(t *testing.T) {
	base, err := model.LoadBaseDir(filepath.Join("testdata", "bert"))
	if err != nil {
		t.Fatal(err)
	}
	s := StepSpec{Config: base.Config, Method: model.Method{RMax: 4, Alpha: 4, Task: model.TaskMultiLabel}, Classes: 3, Rank: 4,
		Spec: training.Spec{Batch: 4, Optimizer: training.AdamW}, Sequence: 8}
	lay, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	batch := emptyBatch(s)
	right := [][]int{{}, {0}, {0, 1}, {2}} // by the second token
	for r := range s.Batch {
		for i := range 5 {
			batch.Int32(task.Tokens)[r*s.Sequence+i] = int32(3 + 7*r + i*(r+1))
		}
		for _, c := range right[r] {
			batch.Float32(task.Labels)[3*r+c] = 1
		}
		batch.Float32(task.Weights)[r] = 1
	}
	var batches []task.Batch
	for range 120 {
		batches = append(batches, batch)
	}
	tr, err := NewTrainer(s, base)
	if err != nil {
		t.Fatal(err)
	}
	start := model.NewAdapter(lay, 5).Slice(4)
	delta, losses, err := tr.Train(t.Context(), start, batches, 0.02)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(float64(losses[0])-math.Ln2) > 1e-6 || losses[119] > 0.05 {
		t.Errorf("loss %v, then %v; want ln 2 at a head of zeros, then little", losses[0], losses[119])
	}
	p, err := NewPredictor(lay, base, s.Sequence, compiler.New())
	if err != nil {
		t.Fatal(err)
	}
	for i := range delta {
		delta[i] += start[i]
	}
	outputs, err := p.Outputs(t.Context(), delta, 4, batch, s.Batch)
	if err != nil {
		t.Fatal(err)
	}
	loss := 0.0
	for r, scores := range outputs {
		if said := task.AnyOf.Predicted(scores); !slices.Equal(said, right[r]) {
			t.Errorf("text %d: %v said, %v right", r, said, right[r])
		}
		loss += task.AnyOf.Loss(scores, right[r]) / 4
	}
	_, after, err := tr.Train(t.Context(), delta, batches[:1], 0)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(loss-float64(after[0])) > 1e-5 {
		t.Errorf("loss %v by the predictor, %v by the step", loss, after[0])
	}
}

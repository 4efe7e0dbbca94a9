package nn

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/tokenizer"
)

// TestHandWrittenGradients holds vocabularyLoss and smoothGelu against autodiff
// of the plain forms.
func TestHandWrittenGradients(t *testing.T) {
	const k, u, h = 5, 7, 4
	prog, err := compile(nil, "gradients", func(g *graph.Graph) ([]Param, []Output, error) {
		p := newParams(g)
		x := p.add("x", Input, dtypes.Float32, k, h)
		words := p.add("words", Input, dtypes.Float32, u, h)
		bias := p.add("bias", Input, dtypes.Float32, u)
		w := p.add("w", Input, dtypes.Float32, k)
		targets := p.add("targets", Input, dtypes.Int32, k)
		var outs []Output
		for _, smooth := range []bool{false, true} {
			f := elementary{smooth}
			state := f.activation(x, "gelu_new")
			var loss, root *graph.Node
			if smooth {
				loss, root = elementary{smooth: true}.vocabularyLoss(state, words, bias, targets, w)
			} else {
				loss = weightedMean(f.surprise(linear(state, words, bias), targets), w)
				root = loss
			}
			outs = append(outs, Output{Node: loss}, Output{Node: graph.MulScalar(state, 1)})
			for _, g := range graph.Gradient(root, x, words, bias) {
				outs = append(outs, Output{Node: g})
			}
		}
		return p.list, outs, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fill := func(n int, scale float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(scale * math.Sin(float64(i*i)+float64(n)))
		}
		return v
	}
	values := []any{fill(k*h, 3), fill(u*h, 1.5), fill(u, 1), []float32{1, 0.5, 0, 2, 1}, []int32{0, 6, 3, 3, 2}}
	var in []compute.Buffer
	for i, p := range prog.params {
		b, err := prog.buffer(p, values[i])
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, b)
	}
	res, err := prog.run(in)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{1, k * h, k * h, u * h, u}
	for i, n := range sizes {
		a, err := floats(res[i], n)
		if err != nil {
			t.Fatal(err)
		}
		b, err := floats(res[len(sizes)+i], n)
		if err != nil {
			t.Fatal(err)
		}
		for j := range a {
			if math.Abs(float64(a[j]-b[j])) > 2e-6 {
				t.Errorf("%s: autodiff %v, written out %v", []string{"loss", "state", "d state", "d words", "d bias"}[i], a, b)
				break
			}
		}
	}
}

// toyCorpus yields lines about two subjects, told apart by their words.
func toyCorpus(lines int) func(func(string) bool) {
	words := [][]string{strings.Fields("corn wheat barley harvest field farmer"), strings.Fields("ship port cargo vessel captain harbour")}
	return func(yield func(string) bool) {
		for i := range lines {
			var b strings.Builder
			for j := range 8 {
				b.WriteString(words[i%2][(i*5+j*(3+i%4))%6] + " ")
			}
			if !yield(b.String()) {
				return
			}
		}
	}
}

func toySpec(steps int) PretrainSpec {
	s := DefaultPretrain(model.BERT(64, 16, 1, 2, 12))
	s.Batch, s.Steps, s.Candidates = 8, steps, 32
	return s
}

func TestPretrainLearnsAndRepeats(t *testing.T) {
	var losses []float32
	a, err := MakeBase(context.Background(), toySpec(60), toyCorpus(64), model.NF4, func(_ int, l float32) { losses = append(losses, l) })
	if err != nil {
		t.Fatal(err)
	}
	if first, last := mean(losses[:10]), mean(losses[50:]); !(last < 0.9*first) {
		t.Errorf("loss %v -> %v", first, last)
	}
	b, err := MakeBase(context.Background(), toySpec(60), toyCorpus(64), model.NF4, nil)
	if err != nil {
		t.Fatal(err)
	}
	x, errX := a.Blob()
	y, errY := b.Blob()
	if errX != nil || errY != nil || !slices.Equal(x, y) {
		t.Errorf("the same seed made another base (%v, %v)", errX, errY)
	}
}

// TestPretrainGoesOn interrupts a run twice: what it leaves leads to the same
// base, and is not mistaken for the state of another run.
func TestPretrainGoesOn(t *testing.T) {
	const steps = 9
	blob := func(b *model.Base, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		data, err := b.Blob()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	want := blob(MakeBase(context.Background(), toySpec(steps), toyCorpus(64), model.F32, nil))

	spec := toySpec(steps)
	spec.StatePath = filepath.Join(t.TempDir(), "new", "state")
	var ran []int
	for _, stop := range []int{3, 7} {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := MakeBase(ctx, spec, toyCorpus(64), model.F32, func(step int, _ float32) {
			ran = append(ran, step)
			if step == stop {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted at %d: %v", stop, err)
		}
	}
	other := spec
	other.Seed++
	if _, err := MakeBase(context.Background(), other, toyCorpus(64), model.F32, nil); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("another seed went on from the state: %v", err)
	}
	got := blob(MakeBase(context.Background(), spec, toyCorpus(64), model.F32, func(step int, _ float32) { ran = append(ran, step) }))
	if !slices.Equal(got, want) {
		t.Error("a run that was interrupted makes another base")
	}
	if !slices.Equal(ran, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("steps %v", ran)
	}
	// What is left at the end holds the result: nothing is trained again.
	again := blob(MakeBase(context.Background(), spec, toyCorpus(64), model.F32, func(int, float32) { t.Error("a step was made again") }))
	if !slices.Equal(again, want) {
		t.Error("the finished state makes another base")
	}
	if err := os.WriteFile(spec.StatePath, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeBase(context.Background(), spec, toyCorpus(64), model.F32, nil); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a broken state: %v", err)
	}
}

// TestPoolerWhitens checks that the pooled features of the rows it was fitted
// to have mean 0 and the variance that the ridge leaves.
func TestPoolerWhitens(t *testing.T) {
	b, err := MakeBase(context.Background(), toySpec(5), toyCorpus(400), model.F32, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(b.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	// A head that passes features through shows them as logits.
	lay, err := model.NewLayout(b.Config, model.Method{RMax: 1, Alpha: 1}, 16)
	if err != nil {
		t.Fatal(err)
	}
	head := make([]float32, lay.Size(0))
	for i := range 16 {
		head[i*16+i] = 1
	}
	p, err := NewPredictor(lay, b, 12, nil)
	if err != nil {
		t.Fatal(err)
	}
	feats, err := p.Logits(context.Background(), head, 0, Rows(tok.(*tokenizer.WordPiece), toyCorpus(400), 12))
	if err != nil {
		t.Fatal(err)
	}
	sum, square := make([]float64, 16), 0.0
	for _, f := range feats {
		for i, x := range f {
			sum[i] += float64(x) / float64(len(feats))
			square += float64(x*x) / float64(len(feats)) / 16
		}
	}
	for i, m := range sum {
		if math.Abs(m) > 1e-3 {
			t.Errorf("feature %d has mean %v", i, m)
		}
	}
	// An eigenvalue v becomes v/(v + ridge*mean): on average at most 1/(1+ridge).
	if limit := 1 / (1 + poolerRidge); square < limit/5 || square > limit*1.001 {
		t.Errorf("mean variance %v, want at most %v and not far below", square, limit)
	}
}

func TestPretrainRefuses(t *testing.T) {
	for name, f := range map[string]func(s *PretrainSpec){
		"batch": func(s *PretrainSpec) { s.Batch = 0 }, "seq": func(s *PretrainSpec) { s.Sequence = 13 },
		"steps": func(s *PretrainSpec) { s.Steps = 0 }, "candidates": func(s *PretrainSpec) { s.Candidates = 4 },
		"learning rate": func(s *PretrainSpec) { s.LearningRate = 0 },
	} {
		s := toySpec(1)
		f(&s)
		if _, err := MakeBase(context.Background(), s, toyCorpus(40), model.F32, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := MakeBase(context.Background(), toySpec(1), toyCorpus(3), model.F32, nil); !errors.Is(err, ErrCorpus) {
		t.Errorf("a corpus of three lines: got %v", err)
	}
}

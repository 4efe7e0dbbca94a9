package pretraining

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

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

func toySpec(steps int) EncoderSpec {
	s := DefaultEncoder(model.BERT(64, 16, 1, 2, 12))
	s.Batch, s.Steps, s.Candidates = 8, steps, 32
	return s
}

func TestEncoderLearnsAndRepeats(t *testing.T) {
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

// TestEncoderGoesOn interrupts a run twice: what it leaves leads to the same
// base, and is not mistaken for the state of another run.
func TestEncoderGoesOn(t *testing.T) {
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
	p, err := nn.NewPredictor(lay, b, 12, nil)
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

func TestEncoderRefuses(t *testing.T) {
	for name, f := range map[string]func(s *EncoderSpec){
		"batch": func(s *EncoderSpec) { s.Batch = 0 }, "seq": func(s *EncoderSpec) { s.Sequence = 13 },
		"steps": func(s *EncoderSpec) { s.Steps = 0 }, "candidates": func(s *EncoderSpec) { s.Candidates = 4 },
		"learning rate": func(s *EncoderSpec) { s.LearningRate = 0 },
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

func mean(v []float32) (m float64) {
	for _, x := range v {
		m += float64(x) / float64(len(v))
	}
	return m
}

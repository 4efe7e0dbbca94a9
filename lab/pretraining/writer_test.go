package pretraining

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

func tinyWriterSpec() WriterSpec {
	c := model.Config{ModelType: "t5", VocabSize: 20, HiddenSize: 16, NumHiddenLayers: 1, NumAttentionHeads: 2, IntermediateSize: 32,
		LayerNormEps: 1e-6, HiddenAct: "relu", T5: model.T5{DecoderLayers: 1, KeySize: 8, Buckets: 8, MaxDistance: 16, Scaled: true, End: 1, Boxes: 11, LinearBoxes: true,
			Patched: model.Patched{ViT: model.ViT{ImageSize: model.Square(6), PatchSize: model.Square(2), Channels: 1, Std: [3]float64{1, 1, 1}}}}}
	return WriterSpec{Spec: Spec{Config: c, Batch: 8, Sequence: 6, Steps: 60, LearningRate: 0.01, Seed: 3}, Answer: 3, Source: "a test"}
}

// echo asks for the first token.
func echo(_ int, rng *rand.Rand, _ float64, b task.Batch) error {
	for row := range 8 {
		for i := range 6 {
			b.Int32(task.Tokens)[6*row+i] = int32(2 + rng.IntN(18))
			b.Int32(task.Boxes)[4*(6*row+i)] = int32(i)
		}
		first := b.Int32(task.Tokens)[6*row]
		copy(b.Int32(task.DecoderTokens)[3*row:], []int32{0, first, 0})
		copy(b.Int32(task.Labels)[3*row:], []int32{first, 1, 0})
		copy(b.Float32(task.Weights)[3*row:], []float32{1, 1, 0})
	}
	return nil
}

func TestT5PretrainingLearnsAndGoesOn(t *testing.T) {
	s := tinyWriterSpec()
	var losses []float32
	want, err := Writer(t.Context(), s, echo, func(_ int, l float32) { losses = append(losses, l) })
	if err != nil {
		t.Fatal(err)
	}
	if first, last := losses[0], losses[len(losses)-1]; !(last < 0.7*first) {
		t.Errorf("loss %v -> %v", first, last)
	}
	if _, err := model.NewBase(s.Config, want, []byte("{}"), model.F32); err != nil {
		t.Error(err)
	}

	s.StatePath = filepath.Join(t.TempDir(), "state")
	ctx, stop := context.WithCancel(t.Context())
	_, err = Writer(ctx, s, echo, func(step int, _ float32) {
		if step == 25 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	other := s
	other.LearningRate = 0.02
	if _, err := Writer(t.Context(), other, echo, nil); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("another rate over the state: %v", err)
	}
	began := 0
	got, err := Writer(t.Context(), s, echo, func(step int, _ float32) {
		if began == 0 {
			began = step
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if began != 26 || !reflect.DeepEqual(got, want) {
		t.Errorf("it went on with step %d, to other tensors: %v", began, !reflect.DeepEqual(got, want))
	}
	if err := os.WriteFile(s.StatePath, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Writer(t.Context(), s, echo, nil); err == nil {
		t.Error("a broken state")
	}
}

// A decoder starts as transformers' does, learns what comes next, and makes a base.
func TestDecoderPretrainingLearns(t *testing.T) {
	c := model.Llama(20, 16, 1, 2, 8)
	c.Decoder.Ends = model.Ends{1, 1, 1, 1}
	s := WriterSpec{Spec: Spec{Config: c, Batch: 8, Sequence: 6, Steps: 60, LearningRate: 0.01, Seed: 3}}
	count := func(_ int, rng *rand.Rand, _ float64, b task.Batch) error {
		for row := range 8 {
			id := int32(rng.IntN(20))
			for i := range 6 {
				b.Int32(task.Tokens)[6*row+i] = (id + int32(i)) % 20
			}
			for i := range 5 {
				b.Int32(task.Places)[5*row+i], b.Int32(task.Labels)[5*row+i], b.Float32(task.Weights)[5*row+i] = int32(i), (id+int32(i)+1)%20, 1
			}
		}
		return nil
	}
	var losses []float32
	made, err := Writer(t.Context(), s, count, func(_ int, l float32) { losses = append(losses, l) })
	if err != nil {
		t.Fatal(err)
	}
	if first, last := losses[0], losses[len(losses)-1]; !(first > 2.8 && first < 3.2 && last < 0.7*first) {
		t.Errorf("loss %v -> %v, of %d tokens as likely as each other %v", first, last, 20, 2.996)
	}
	if _, err := model.NewBase(s.Config, made, []byte("{}"), model.F32); err != nil {
		t.Error(err)
	}
}

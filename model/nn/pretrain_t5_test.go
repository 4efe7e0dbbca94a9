package nn

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
)

func tinyT5Spec() T5Spec {
	c := model.Config{ModelType: "t5", VocabSize: 20, HiddenSize: 16, NumHiddenLayers: 1, NumAttentionHeads: 2, IntermediateSize: 32,
		LayerNormEps: 1e-6, HiddenAct: "relu", T5: model.T5{DecoderLayers: 1, KeySize: 8, Buckets: 8, MaxDistance: 16, Scaled: true, End: 1, Boxes: 11, Patch: 2, Patches: 3}}
	return T5Spec{Config: c, Batch: 8, Sequence: 6, Answer: 3, Steps: 60, LearningRate: 0.01, Seed: 3, Source: "a test"}
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
	s := tinyT5Spec()
	var losses []float32
	want, err := PretrainT5(t.Context(), s, echo, func(_ int, l float32) { losses = append(losses, l) })
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
	_, err = PretrainT5(ctx, s, echo, func(step int, _ float32) {
		if step == 25 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	other := s
	other.LearningRate = 0.02
	if _, err := PretrainT5(t.Context(), other, echo, nil); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("another rate over the state: %v", err)
	}
	began := 0
	got, err := PretrainT5(t.Context(), s, echo, func(step int, _ float32) {
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
	if _, err := PretrainT5(t.Context(), s, echo, nil); err == nil {
		t.Error("a broken state")
	}
}

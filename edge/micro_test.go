package edge

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm"
)

// microTask is two steps of batches of 8, in pieces of micro.
func microTask(t *testing.T, base *model.Base, optimizer string, micro int) Task {
	t.Helper()
	s := step(base, 2, optimizer)
	s.Batch, s.MicroBatch = 8, micro
	s.Spec = often(s.Spec)
	k := assigned(t, base, 2, compile(t, s, false))
	var batches []Batch
	for n := range 2 {
		b := task.NewBatch(k.Columns, 8)
		for i := range b.Int32(task.Tokens) {
			b.Int32(task.Tokens)[i] = 1 + int32(i*7+n*3)%int32(base.Config.VocabSize-1)
		}
		for i := range 8 - n { // the last batch is not full
			b.Int32(task.Labels)[i], b.Float32(task.Weights)[i] = int32(i+n)%2, 1
		}
		batches = append(batches, b)
	}
	k.Batch, k.Steps, k.Batches = 8, 2, trainer.Batches(batches...)
	return k
}

// A batch in pieces trains what the whole one does but for rounding, in less memory,
// and has the same bits with every kernel, on any number of cores, and anew after
// another use.
func TestMicroBatches(t *testing.T) {
	base := tinyBase(t)
	for _, optimizer := range []string{training.SGD, training.AdamW, training.Shampoo} {
		whole := microTask(t, base, optimizer, 0)
		one := NewProgramTrainer(1)
		defer one.Close()
		want, err := one.Train(t.Context(), whole)
		ok(t, err)
		k := microTask(t, base, optimizer, 2)
		got, err := one.Train(t.Context(), k)
		ok(t, err)
		far := 0.0
		for i := range want {
			far += math.Abs(float64(got[i]-want[i])) / float64(len(want))
		}
		if far > 2e-5 || slices.Equal(got, want) {
			t.Errorf("%s: %v from the whole batch", optimizer, far)
		}
		for _, kernel := range wasm.Kernels() {
			other := NewProgramTrainer(1)
			defer other.Close()
			other.Kernel, other.Cores = kernel, 2
			for range 2 {
				if again, err := other.Train(t.Context(), k); err != nil || !slices.Equal(again, got) {
					t.Errorf("%s, %s: other bits, %v", optimizer, kernel, err)
				}
			}
		}
		if m, w := pages(t, k), pages(t, whole); m > w {
			t.Errorf("%s: %d pages in pieces, %d whole", optimizer, m, w)
		}
	}
}

func pages(t *testing.T, k Task) uint32 {
	t.Helper()
	p, err := wasm.Load(t.Context(), k.Program, wasm.Config{})
	ok(t, err)
	defer p.Close()
	return p.Report().MemoryPages
}

// A program that takes pieces must say which is the last, and they must make up the
// batch; the work of all of them counts.
func TestHostileMicroBatches(t *testing.T) {
	base := tinyBase(t)
	one := NewProgramTrainer(1)
	defer one.Close()
	small := step(base, 2, training.SGD) // takes 2, and updates each time
	k := microTask(t, base, training.SGD, 4)
	k.Program = compile(t, small, false)
	if _, err := one.Train(t.Context(), k); !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), trainer.InputLast) {
		t.Errorf("updates in every piece: %v", err)
	}
	k = microTask(t, base, training.SGD, 4)
	if _, err := one.Train(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.Batch = 6 // the program is in memory, but for another batch
	if _, err := one.Train(t.Context(), k); !errors.Is(err, ErrMisfit) {
		t.Errorf("a batch that its pieces do not make up: %v", err)
	}
	k = microTask(t, base, training.SGD, 4)
	b, err := one.load(t.Context(), k, [32]byte{})
	ok(t, err)
	defer b.close()
	k.Work = b.bound(k.Steps) * 1.5
	beyond := new(PolicyError)
	if _, err := one.Train(t.Context(), k); !errors.As(err, &beyond) || beyond.Key != "work" {
		t.Errorf("twice the work that is allowed: %v", err)
	}
}

// A program that takes more memory than the owner gives is refused before it has any,
// with what would make it less.
func TestHostileMemory(t *testing.T) {
	base := tinyBase(t)
	one := NewProgramTrainer(1)
	defer one.Close()
	s := step(base, 2, training.SGD)
	s.Batch = 512
	k := assigned(t, base, 2, compile(t, s, false))
	k.Batch, k.MostMemory = 512, 1
	beyond := new(PolicyError)
	if _, err := one.Train(t.Context(), k); !errors.As(err, &beyond) || beyond.Key != "memory" || !strings.Contains(err.Error(), "micro_batch") {
		t.Fatalf("%v", err)
	}
	if p := DefaultPolicy(); p.Allow(beyond.Key, beyond.Have) != nil || p.Memory <= 1 || p.Memory > 1024 {
		t.Errorf("widened to %d MiB", p.Memory)
	}
}

// A device that is too small for a job declines the second round, and all that follow,
// without loading the program again; with limits that let it, it trains.
func TestHostileProgramsAreWeighedOnce(t *testing.T) {
	base := tinyBase(t)
	s := step(base, 2, training.SGD)
	s.Batch = 512
	program := compile(t, s, false)
	for key, limit := range map[string]func(k *Task){
		"memory": func(k *Task) { k.MostMemory = 1 },
		"work":   func(k *Task) { k.Work = 1 },
	} {
		one := NewProgramTrainer(1)
		defer one.Close()
		k := assigned(t, base, 2, program)
		k.Batch = 512
		limit(&k)
		declined := func() {
			beyond := new(PolicyError)
			if _, err := one.Train(t.Context(), k); !errors.As(err, &beyond) || beyond.Key != key {
				t.Fatalf("%s: %v", key, err)
			}
		}
		reached := errors.New("the base is read")
		k.Base = func(context.Context) (*model.Base, error) { return nil, reached }
		declined()
		if made := testing.AllocsPerRun(3, declined); made > 100 { // loading makes thousands
			t.Errorf("%s: declining again makes %.0f allocations", key, made)
		}
		k.MostMemory, k.Work = 1024, 1e13
		if _, err := one.Train(t.Context(), k); !errors.Is(err, reached) {
			t.Errorf("%s: with other limits: %v", key, err)
		}
	}
}

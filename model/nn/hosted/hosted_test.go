package hosted

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/internal/leaf/untrained"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

// described is a specification by its rank alone, and counts how often one was read.
type described struct {
	mu    sync.Mutex
	reads map[string]int // by mu
}

func (d *described) read(text []byte, b *model.Base) (nn.StepSpec, error) {
	d.mu.Lock()
	d.reads[string(text)]++
	d.mu.Unlock()
	var rank int
	if _, err := fmt.Sscanf(string(text), "rank %d", &rank); err != nil {
		return nn.StepSpec{}, err
	}
	s := testSpec(rank)
	s.Config = b.Config
	return s, nil
}

// goBackendOf is GoMLX's Go backend, one operation after the other.
func goBackendOf(t testing.TB) compute.Backend {
	t.Helper()
	be, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		t.Fatal(err)
	}
	return be
}

func hostedTask(t testing.TB, base *model.Base, id byte, rank int) trainer.Task {
	t.Helper()
	s := testSpec(rank)
	s.Config = base.Config
	lay, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	return trainer.Task{
		Base: func(context.Context) (*model.Base, error) { return base, nil }, BaseSHA256: [32]byte{id},
		Layout: lay, Rank: rank, Start: slice(t, s), Batches: trainer.Batches(testBatches(s, 3)...),
		Spec:     training.Spec{Steps: 3, Optimizer: training.SGD, LearningRate: 0.1, Batch: s.Batch},
		Sequence: s.Sequence, Program: fmt.Appendf(nil, "rank %d", rank),
	}
}

// Trainings of several ranks and two bases side by side are those of a trainer that
// does one at a time, and each step is made once.
func TestHostedSideBySide(t *testing.T) {
	d := &described{reads: map[string]int{}}
	h := New(goBackendOf(t), 3, d.read)
	other, err := model.NewBase(testSpec(1).Config, untrained.Tensors(testSpec(1).Config, 6, 0.3), []byte("{}"), model.F32)
	if err != nil {
		t.Fatal(err)
	}
	bases := []*model.Base{testBase(t, testSpec(1).Config), other}
	var wg sync.WaitGroup
	for i := range 24 {
		b, rank := i%2, i/2%3
		wg.Go(func() {
			task := hostedTask(t, bases[b], byte(b), rank)
			s := testSpec(rank)
			one, err := nn.NewTrainer(s, bases[b])
			if err != nil {
				t.Error(err)
				return
			}
			want, _, err := one.Train(t.Context(), task.Start, testBatches(s, 3), float32(task.LearningRate))
			if err != nil {
				t.Error(err)
				return
			}
			var told []int
			task.Progress = func(done, total int) { told = append(told, 10*done+total) }
			got, err := h.Train(t.Context(), task)
			if err != nil || !slices.Equal(got, want) || !slices.Equal(told, []int{13, 23, 33}) {
				t.Errorf("base %d, rank %d: another update, told %v: %v", b, rank, told, err)
			}
		})
	}
	wg.Wait()
	for _, one := range h.steps {
		if one.used != 0 {
			t.Error("a step is held by nobody")
		}
	}
	// The same base again costs nothing; another lets go of what it does not need.
	before := d.reads["rank 1"]
	if _, err := h.Train(t.Context(), hostedTask(t, bases[1], h.steps[len(h.steps)-1].base[0], 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Train(t.Context(), hostedTask(t, bases[0], 9, 1)); err != nil {
		t.Fatal(err)
	}
	if len(h.weights) != 1 || len(h.steps) != 1 {
		t.Errorf("%d bases and %d steps are kept, one of each is needed", len(h.weights), len(h.steps))
	}
	if d.reads["rank 1"] > before+2 {
		t.Error("a step was made twice")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if len(h.weights) != 0 || len(h.steps) != 0 {
		t.Error("something is left")
	}
}

func TestHostedRefuses(t *testing.T) {
	base := testBase(t, testSpec(1).Config)
	h := New(goBackendOf(t), 1, (&described{reads: map[string]int{}}).read)
	defer h.Close()
	for want, change := range map[string]func(*trainer.Task){
		"expected integer": func(k *trainer.Task) { k.Program = []byte("rank x") },
		"rank 2":           func(k *trainer.Task) { k.Program = []byte("rank 2") },
		"5 x 12":           func(k *trainer.Task) { k.Batch = 5 },
		"momentum":         func(k *trainer.Task) { k.Optimizer = training.Momentum },
		"3 batches":        func(k *trainer.Task) { k.Steps = 4 },
		"no base":          func(k *trainer.Task) { k.BaseSHA256[0] = 3; k.Base = noBase },
		"diverged":         func(k *trainer.Task) { k.LearningRate = 1e38 },
	} {
		k := hostedTask(t, base, 1, 1)
		change(&k)
		if _, err := h.Train(t.Context(), k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
		if _, err := h.Train(t.Context(), hostedTask(t, base, 1, 1)); err != nil {
			t.Errorf("after %q: %v", want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	k := hostedTask(t, base, 1, 1)
	k.Progress = func(int, int) { cancel() }
	if _, err := h.Train(ctx, k); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped after a step: %v", err)
	}
}

func noBase(context.Context) (*model.Base, error) { return nil, errors.New("no base") }

package edge

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm/compiler"
)

// step is the training step of the test base.
func step(base *model.Base, rank int, optimizer string) nn.StepSpec {
	return nn.StepSpec{Config: base.Config, Method: model.Method{RMax: 4, Alpha: 4}, Classes: 2, Rank: rank, Spec: training.Spec{Batch: 2, Optimizer: optimizer}, Sequence: 8}
}

// often has shampoo's factors grow in every step, and their roots taken in every second: a few are enough to tell.
func often(s training.Spec) training.Spec {
	if s.Optimizer == training.Shampoo {
		s.StatisticsEvery, s.RootsEvery = 1, 2
	}
	return s
}

// compile makes a program of a step for this host.
func compile(t testing.TB, s nn.StepSpec, nf4 bool) []byte {
	t.Helper()
	return compileWith(t, s.Build, nf4)
}

func compileWith(t testing.TB, build func(*graph.Graph) ([]nn.Param, []nn.Output, error), nf4 bool) []byte {
	t.Helper()
	var params []nn.Param
	var outputs []nn.Output
	recorded, err := compiler.Record(func(g *graph.Graph) []*graph.Node {
		var err error
		if params, outputs, err = build(g); err != nil {
			panic(err)
		}
		nodes := make([]*graph.Node, len(outputs))
		for i, o := range outputs {
			nodes[i] = o.Node
		}
		return nodes
	})
	ok(t, err)
	spec := compiler.Spec{Name: "test", Host: host}
	for _, p := range params {
		switch p.Role {
		case nn.State:
			spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: compiler.State})
		case nn.Frozen:
			spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: compiler.Frozen, NF4: nf4 && len(p.Shape) == 2 && !strings.HasPrefix(p.Name, "pooler.")})
		}
	}
	for _, o := range outputs {
		spec.Outputs = append(spec.Outputs, compiler.Output{Name: o.Name, State: o.State})
	}
	program, err := compiler.CompileGraph(recorded, spec)
	ok(t, err)
	return program
}

func baseHash(t testing.TB, base *model.Base) [32]byte {
	t.Helper()
	blob, err := base.Blob()
	ok(t, err)
	return sha256.Sum256(blob)
}

// assigned is a few steps from a fresh adapter.
func assigned(t testing.TB, base *model.Base, rank int, program []byte) Task {
	t.Helper()
	layout, err := model.NewLayout(base.Config, model.Method{RMax: 4, Alpha: 4}, 2)
	ok(t, err)
	return assignedTo(t, base, layout, rank, program)
}

func assignedTo(t testing.TB, base *model.Base, layout *model.Layout, rank int, program []byte) Task {
	t.Helper()
	columns, err := task.Columns(layout, 8)
	ok(t, err)
	b := func(x int32) Batch {
		b := task.NewBatch(columns, 2)
		tokens := b.Int32(task.Tokens)
		for i := range 12 { // the rest is padding
			tokens[i] = 1 + (x*5+int32(i)*3)%int32(base.Config.VocabSize-1)
		}
		for i := range b.Int32(task.Labels) {
			b.Int32(task.Labels)[i], b.Float32(task.Weights)[i] = (x+int32(i))%2, 1
		}
		for i := range b.Float32(task.Labels) { // of spans: two begins, one end
			b.Float32(task.Labels)[i] = map[int]float32{0: 1, 4: 1, 7: 1}[i%16]
			b.Float32(task.Weights)[i/16] = 1
		}
		for i := range b.Int32(task.Boxes) {
			b.Int32(task.Boxes)[i] = (x*31 + int32(i)*57) % 1001
		}
		for i := range b.Int32(task.Types) {
			b.Int32(task.Types)[i] = int32(i / 4 % 2)
		}
		for i := range b.Int32(task.DecoderTokens) {
			b.Int32(task.DecoderTokens)[i] = (x*3 + int32(i)*7) % int32(base.Config.VocabSize)
		}
		return b
	}
	last := b(4)
	last.Float32(task.Weights)[1] = 0
	return Task{
		Base:       func(context.Context) (*model.Base, error) { return base, nil },
		BaseSHA256: baseHash(t, base), Layout: layout, Rank: rank, Start: model.NewAdapter(layout, 3).Slice(rank),
		Columns: columns, Batches: trainer.Batches(b(1), b(2), b(3), last), Spec: training.Spec{Steps: 4, LearningRate: 0.1, Batch: 2}, Sequence: 8, Program: program,
	}
}

// A base that is stored in four bits trains the same whether the program keeps
// it in four bits or in float32.
func TestNF4BaseIsLossless(t *testing.T) {
	plain := tinyBase(t)
	base, err := model.NewBase(plain.Config, plain.Tensors, plain.Tokenizer, model.NF4)
	ok(t, err)
	trainer := NewProgramTrainer(1)
	defer trainer.Close()
	s := step(base, 2, training.SGD)
	wide, err := trainer.Train(t.Context(), assigned(t, base, 2, compile(t, s, false)))
	ok(t, err)
	narrow, err := trainer.Train(t.Context(), assigned(t, base, 2, compile(t, s, true)))
	ok(t, err)
	for i := range wide {
		if d := math.Abs(float64(wide[i] - narrow[i])); d > 1e-6 {
			t.Fatalf("value %d: %v in float32, %v in four bits", i, wide[i], narrow[i])
		}
	}
}

// The cores of a trainer reach the program, and change no bit of what it trains.
func TestTrainerCores(t *testing.T) {
	base := tinyBase(t)
	program := compile(t, step(base, 2, training.SGD), false)
	var deltas [][]float32
	for _, cores := range []int{0, 3} {
		trainer := NewProgramTrainer(1)
		defer trainer.Close()
		trainer.Cores = cores
		if got := trainer.config().Cores; got != cores {
			t.Errorf("%d cores became %d", cores, got)
		}
		delta, err := trainer.Train(t.Context(), assigned(t, base, 2, program))
		ok(t, err)
		deltas = append(deltas, delta)
	}
	if !slices.Equal(deltas[0], deltas[1]) {
		t.Error("cores change what is trained")
	}
}

func TestProgramsThatDoNotFit(t *testing.T) {
	base := tinyBase(t)
	trainer := NewProgramTrainer(1)
	defer trainer.Close()
	good := compile(t, step(base, 2, training.SGD), false)
	for name, test := range map[string]struct {
		text   string
		change func(*Task)
	}{
		"no program":      {"", func(k *Task) { k.Program = nil }},
		"not a program":   {"", func(k *Task) { k.Program = []byte("\x00asm....") }},
		"other rank":      {"lora_A", func(k *Task) { *k = assigned(t, base, 1, good) }},
		"other batch":     {"tokens", func(k *Task) { k.Batch = 3 }},
		"other sequence":  {"tokens", func(k *Task) { k.Columns[0].Shape = []int{9} }},
		"other type":      {"labels", func(k *Task) { k.Columns[1].Type = task.F32 }},
		"a column more":   {"boxes", func(k *Task) { k.Columns = append(k.Columns, task.Column{Name: "boxes", Type: task.I32}) }},
		"a column less":   {"weights", func(k *Task) { k.Columns = k.Columns[:2] }},
		"more to train":   {"lora", func(k *Task) { k.Program = compile(t, step(base, 0, training.SGD), false) }},
		"another encoder": {"", func(k *Task) { k.Program = compile(t, otherEncoder(base), false) }},
	} {
		k := assigned(t, base, 2, good)
		test.change(&k)
		if _, err := trainer.Train(t.Context(), k); !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := trainer.Train(t.Context(), assigned(t, base, 2, good)); err != nil {
		t.Errorf("after all these: %v", err)
	}
}

func otherEncoder(base *model.Base) nn.StepSpec {
	s := step(base, 2, training.SGD)
	s.Config.VocabSize += 8
	return s
}

// Training that diverges is an error, not an update.
func TestDivergenceIsAnError(t *testing.T) {
	base := tinyBase(t)
	trainer := NewProgramTrainer(1)
	defer trainer.Close()
	k := assigned(t, base, 2, compile(t, step(base, 2, training.SGD), false))
	k.LearningRate = 1e38
	if _, err := trainer.Train(t.Context(), k); err == nil {
		t.Error("no error")
	}
}

// Many clients share a trainer: each gets its own result, whatever the others do.
func TestSharedTrainer(t *testing.T) {
	base := tinyBase(t)
	trainer := NewProgramTrainer(2)
	defer trainer.Close()
	programs := map[int][]byte{1: compile(t, step(base, 1, training.SGD), false), 4: compile(t, step(base, 4, training.SGD), false)}
	want := map[int][]float32{}
	for rank, p := range programs {
		var err error
		want[rank], err = trainer.Train(t.Context(), assigned(t, base, rank, p))
		ok(t, err)
	}
	var wg sync.WaitGroup
	for i := range 12 {
		rank := []int{1, 4}[i%2]
		k := assigned(t, base, rank, programs[rank])
		wg.Go(func() {
			got, err := trainer.Train(t.Context(), k)
			if err != nil || !slices.Equal(got, want[rank]) {
				t.Errorf("training %d at rank %d differs: %v", i, rank, err)
			}
		})
	}
	watchdog.Wait(t, "twelve trainings", wg.Wait)
	if n := len(trainer.idle); n > 2 {
		t.Errorf("%d instances kept", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trainer.Train(ctx, assigned(t, base, 1, programs[1])); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

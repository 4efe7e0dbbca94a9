package edge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/task"
	jobs "github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/program"
)

// hears is a base that hears, by group or by layer norms.
func hears(t *testing.T, norm string) *model.Base {
	t.Helper()
	c := model.NewHubert(8, 16, 1)
	c.Speech.Positions, c.Speech.Groups, c.Speech.Norm, c.Speech.Masked = 4, 2, norm, norm == "layer"
	base, err := model.RandomBase(c, 3, nil)
	ok(t, err)
	return base
}

// listening is a round of six steps over five recordings, four at a time: none is at one place in two orders.
func listening(t *testing.T, base *model.Base, rank, micro int, arithmetic string) Task {
	t.Helper()
	j := jobs.Default()
	j.Task, j.Labels = model.TaskListen.String(), []string{"no", "yes"}
	j.Adapter = jobs.Adapter{RankMin: 1, RankMax: 2, Alpha: 2, Sequence: 3}
	j.Training = jobs.Training{Steps: 6, Batch: 4, MicroBatch: micro, Optimizer: training.AdamW, LearningRate: 0.01, Arithmetic: arithmetic}
	layout, err := model.NewLayout(base.Config, j.Method(), 2)
	ok(t, err)
	code, err := program.Step(program.Spec{Job: j, Base: base, Rank: rank, Host: host})
	ok(t, err)
	columns, err := task.Columns(layout, 3)
	ok(t, err)
	var batches []Batch
	for n := range j.Training.Steps {
		b := task.NewBatch(columns, 4)
		samples := b.Float32(task.Samples)
		for row := range 4 - n%2 { // a row may only fill up
			who := (n*3 + row) % 5
			for i := range len(samples) / 4 {
				samples[row*len(samples)/4+i] = float32(math.Sin(float64(i*(who+2)) / 9))
			}
			for i := range 3 {
				b.Float32(task.Keep)[row*3+i] = 1
			}
			b.Int32(task.Labels)[row], b.Float32(task.Weights)[row] = int32(who%2), 1
		}
		batches = append(batches, b)
	}
	return Task{Base: func(context.Context) (*model.Base, error) { return base, nil }, BaseSHA256: baseHash(t, base), Layout: layout, Rank: rank,
		Start: model.NewAdapter(layout, 3).Slice(rank), Columns: columns, Batches: trainer.Batches(batches...), Spec: j.Training, Sequence: 3, Program: code}
}

// What convolutions make of a recording is computed once and given from then on, at every rank, in another place of a
// batch and in a later round: the bits are those of a step that computes it each time, and of one that cannot be given it.
func TestFeaturesAreKept(t *testing.T) {
	for norm, micro := range map[string]int{"group": 0, "layer": 2} {
		base := hears(t, norm)
		for _, arithmetic := range []string{jobs.Exact, jobs.Fused} {
			t.Run(fmt.Sprint(norm, " ", arithmetic, " ", micro), func(t *testing.T) {
				p := NewProgramTrainer(1)
				defer p.Close()
				features := trainer.NewFeatures(1 << 20)
				for round := range 3 {
					k := listening(t, base, 1+round%2, micro, arithmetic)
					want, err := p.Train(t.Context(), k)
					ok(t, err)
					k.Features = features
					got, err := p.Train(t.Context(), k)
					ok(t, err)
					if !slices.Equal(got, want) {
						t.Fatalf("round %d: other bits where features are kept", round)
					}
					// The instance is used again: it must not take the last one's features for its own.
					if k.Features = nil; round == 2 {
						again, err := p.Train(t.Context(), k)
						ok(t, err)
						if !slices.Equal(again, want) {
							t.Fatal("other bits without features after a round with them")
						}
					}
					if arithmetic == jobs.Exact {
						s := nn.StepSpec{Config: base.Config, Method: k.Layout.Method, Classes: 2, Rank: k.Rank, Spec: k.Spec, Sequence: 3}
						k.Program = compile(t, s, false)
						if plain, err := p.Train(t.Context(), k); err != nil || !slices.Equal(plain, want) {
							t.Fatalf("round %d: other bits than a step that is given none: %v", round, err)
						}
					}
				}
				// They are what is trained on: others train something else.
				k := listening(t, base, 2, micro, arithmetic)
				want, err := p.Train(t.Context(), k)
				ok(t, err)
				k.Features = trainer.NewFeatures(1 << 20)
				for b := range k.Batches {
					names := trainer.Recordings(b)
					k.Features.Keep(trainer.Maker{Base: k.BaseSHA256, Fused: arithmetic == jobs.Fused}, names, make([]float32, len(names)*3*8))
				}
				if got, err := p.Train(t.Context(), k); err != nil || slices.Equal(got, want) {
					t.Errorf("kept features are not used: %v", err)
				}
				// Nothing is kept where there is no room, and another maker's are not taken.
				for _, f := range []*trainer.Features{trainer.NewFeatures(100), k.Features} {
					other := listening(t, hears(t, map[string]string{"group": "layer", "layer": "group"}[norm]), 2, micro, arithmetic)
					want, err := p.Train(t.Context(), other)
					ok(t, err)
					if other.Features = f; f != k.Features {
						other.Features = trainer.NewFeatures(100)
					}
					if got, err := p.Train(t.Context(), other); err != nil || !slices.Equal(got, want) {
						t.Errorf("other bits: %v", err)
					}
				}
			})
		}
	}
}

// A program that trains its convolutions is given nothing, and one whose features are not its rows' is refused.
func TestHostileFeatures(t *testing.T) {
	base := hears(t, "layer")
	k := listening(t, base, 1, 0, jobs.Exact)
	full, err := model.NewLayout(base.Config, model.Method{Task: model.TaskListen, Kind: model.MethodFull, RMax: 1, Alpha: 1}, 2)
	ok(t, err)
	if nn.Keepable(full) || !nn.Keepable(k.Layout) {
		t.Error("what is trained is kept, or what is frozen is not")
	}
	program, err := wasm.Load(t.Context(), k.Program, wasm.Config{})
	ok(t, err)
	defer program.Close()
	m := *program.Manifest()
	m.State = slices.Clone(m.State)
	i := slices.IndexFunc(m.State, func(s wasm.Tensor) bool { return s.Name == trainer.StateFeatures })
	for _, shape := range [][]int{{}, {3, 3, 8}} {
		m.State[i].Shape = shape
		if err := checkProgram(&m, k, 4, base); err == nil {
			t.Errorf("features %v of four rows", shape)
		}
	}
	m.State[i].Shape = []int{4, maxFeatures / 2}
	if err := checkProgram(&m, k, 4, base); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("features without a bound: %v", err)
	}
	// A text's program has none: no recording would go by a name.
	deaf := k
	deaf.Columns = slices.DeleteFunc(slices.Clone(k.Columns), func(c task.Column) bool { return c.Name == task.Samples })
	m.State[i].Shape = []int{4, 3, 8}
	if err := checkProgram(&m, deaf, 4, base); err == nil || !strings.Contains(err.Error(), "recordings") {
		t.Errorf("features of what is not heard: %v", err)
	}
	trainer.NewFeatures(100).Keep(trainer.Maker{}, nil, make([]float32, 4))
	m.State = slices.Delete(m.State, i, i+1)
	if err := checkProgram(&m, k, 4, base); err == nil {
		t.Error("an input that says whether features are kept, and none are")
	}
}

// A quote is of a step that computes all that a first step does.
func TestQuoteHears(t *testing.T) {
	base := hears(t, "layer")
	k := listening(t, base, 1, 0, jobs.Exact)
	b := &loaded{}
	var err error
	b.program, err = wasm.Load(t.Context(), k.Program, wasm.Config{})
	ok(t, err)
	b.instance, err = b.program.NewInstance(t.Context())
	ok(t, err)
	defer b.close()
	ok(t, b.madeUp(b.program.Manifest()))
	ok(t, b.instance.Step(t.Context()))
	made := make([]float32, 4*3*8)
	ok(t, b.instance.ReadFloat32(trainer.StateFeatures, made))
	if !slices.ContainsFunc(made, func(x float32) bool { return x != 0 }) {
		t.Error("made-up recordings are not heard")
	}
}

// keepers is a trainer that notes where features are kept.
type keepers struct{ of []*trainer.Features }

func (k *keepers) Train(_ context.Context, t Task) ([]float32, error) {
	k.of = append(k.of, t.Features)
	return make([]float32, len(t.Start)), nil
}

func (*keepers) Close() error { return nil }

// What a program says of one provider's recordings is kept from round to round, and is no other provider's.
func TestHostileFeaturesOfProviders(t *testing.T) {
	scheme, err := quant.Lookup("nf4")
	ok(t, err)
	lattice, err := quant.NewLattice(scheme, 64, 1, [32]byte{})
	ok(t, err)
	b := tinyBase(t)
	layout, err := model.NewLayout(b.Config, model.Method{RMax: 2, Alpha: 4}, len(testLabels))
	ok(t, err)
	kind, err := task.New(b, layout, 8)
	ok(t, err)
	data, err := NewData(providersOf(3), kind, 8, 1)
	ok(t, err)
	k := &keepers{}
	for round := range 2 {
		_, err := Contribute(t.Context(), k, data, Contribution{Round: uint64(round + 1), Lattice: lattice, Units: 8,
			Task: Task{Start: make([]float32, 64), Spec: training.Spec{Steps: 2, Batch: 4}, Sequence: 8}})
		ok(t, err)
	}
	distinct := map[*trainer.Features]bool{}
	for _, f := range k.of {
		distinct[f] = true
	}
	if len(k.of) != 6 || len(distinct) != 3 || distinct[nil] {
		t.Errorf("%d trainings of three providers in two rounds keep at %d places", len(k.of), len(distinct))
	}
}

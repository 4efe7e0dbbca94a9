//go:build xla && cgo

package xla

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/nn/hosted"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/simulate"
	"github.com/starling-fl/starling/wasm/compiler"
	"github.com/starling-fl/starling/wasm/program"
)

// pluginVariable names the plugin that the tests load.
const pluginVariable = "STARLING_PJRT"

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open loads the plugin once for all tests.
var open = sync.OnceValues(func() (*Engine, error) { return Open(os.Getenv(pluginVariable)) })

func engine(t testing.TB) *Engine {
	t.Helper()
	if os.Getenv(pluginVariable) == "" {
		t.Skipf("no PJRT plugin: set %s to the absolute path of one, or run make xla", pluginVariable)
	}
	e, err := open()
	ok(t, err)
	return e
}

// recorded keeps the updates that a trainer makes.
type recorded struct {
	trainer.Trainer
	mu     sync.Mutex
	deltas [][]float32 // by mu
}

func (r *recorded) Train(ctx context.Context, t trainer.Task) ([]float32, error) {
	delta, err := r.Trainer.Train(ctx, t)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deltas = append(r.deltas, slices.Clone(delta))
	return delta, err
}

// group keeps the updates that clients come to together.
type group struct {
	hosted.Cohort
	deltas [][]float32
}

func (g *group) TrainAll(ctx context.Context, tasks []trainer.Task) []trainer.Trained {
	out := g.Cohort.TrainAll(ctx, tasks)
	for _, t := range out {
		g.deltas = append(g.deltas, slices.Clone(t.Delta))
	}
	return out
}

func with(cfg simulate.Config, t trainer.Trainer) simulate.Config {
	cfg.Trainer = t
	return cfg
}

// config is a round or more of four clients over a base. Labels and words are uneven:
// where a gradient is zero but for rounding, AdamW makes a whole step of the rounding.
func config(b *model.Base, a job.Adapter, optimizer string, rounds int) simulate.Config {
	var clients simulate.Each
	for i := range 4 {
		s := &dataset.Set{Labels: []string{"one", "two", "three"}}
		for k := range 5 {
			s.Examples = append(s.Examples, dataset.Example{
				Text: strings.Repeat("invoice ", 1+(i+k)%4) + []string{"of the garden", "water", "works"}[k%3], Label: (i + k*k) % 3})
		}
		clients = append(clients, s)
	}
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "test", clients[0].Labels, rounds
	j.Adapter = a
	j.Adapter.Sequence = 12
	j.Training.Steps, j.Training.Batch, j.Training.Optimizer, j.Training.WeightDecay = 3, 2, optimizer, 0
	if optimizer == string(training.AdamW) {
		j.Training.WeightDecay = 0.01
	}
	j.Cohort.Population, j.Cohort.Floor = len(clients), 2
	j.Shard.Floor, j.Shard.BreachBits = 2, 0
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000
	return simulate.Config{Job: j.ForBase(b.Config), Base: b, Population: clients, Seed: bytes.Repeat([]byte{7}, 32), Workers: 1}
}

// play runs it, and returns the updates of all clients and the adapter.
func play(t *testing.T, cfg simulate.Config, with trainer.Trainer) ([][]float32, []byte) {
	t.Helper()
	r := &recorded{Trainer: with}
	cfg.Trainer = r
	run, err := simulate.New(cfg)
	ok(t, err)
	result, err := run.Rounds(watchdog.Context(t))
	ok(t, errors.Join(err, run.Close()))
	adapter, err := model.EncodeAdapter(result.Adapter)
	ok(t, err)
	return r.deltas, adapter
}

// apart is the relative L2 distance.
func apart(got, want []float32) float64 {
	var diff, size float64
	for i := range want {
		diff += math.Pow(float64(got[i]-want[i]), 2)
		size += math.Pow(float64(want[i]), 2)
	}
	return math.Sqrt(diff / size)
}

// bases are one of each architecture; those of testdata get words of their own.
func bases(t testing.TB) map[string]*model.Base {
	t.Helper()
	tok, err := tokenizer.Train(slices.Values([]string{"invoice of the garden", "water works"}), 40)
	ok(t, err)
	words, err := tok.MarshalJSON()
	ok(t, err)
	own, err := base.Default()
	ok(t, err)
	out := map[string]*model.Base{"default": own}
	for _, kind := range []string{"bert", "roberta", "distilbert"} {
		b, err := model.LoadBaseDir(filepath.Join("..", "nn", "testdata", kind))
		ok(t, err)
		b.Tokenizer = words
		out[kind] = b
	}
	return out
}

// A round's updates are those of the compiled program, for every architecture,
// method, optimizer and rank.
func TestUpdatesAgreeWithTheProgram(t *testing.T) {
	e := engine(t)
	hosted := hosted.New(e.Backend, 1, program.Read)
	compiled := edge.NewProgramTrainer(1)
	worst := 0.0
	check := func(name string, b *model.Base, a job.Adapter, optimizer string) {
		t.Helper()
		cfg := config(b, a, string(optimizer), 1)
		want, _ := play(t, cfg, compiled)
		cfg.Compile = program.Describe
		got, _ := play(t, cfg, hosted)
		if len(got) != len(want) || len(got) == 0 {
			t.Fatalf("%s: %d updates, the program made %d", name, len(got), len(want))
		}
		together := &group{Cohort: hosted.Together(3)} // four clients: one group has an empty place
		run, err := simulate.New(with(cfg, together))
		ok(t, err)
		_, err = run.Rounds(watchdog.Context(t))
		ok(t, errors.Join(err, run.Close()))
		if len(together.deltas) != len(want) {
			t.Fatalf("%s: %d updates together, the program made %d", name, len(together.deltas), len(want))
		}
		for i := range want {
			for how, delta := range map[string][]float32{"alone": got[i], "together": together.deltas[i]} {
				d := apart(delta, want[i])
				if !(d <= 1e-4) {
					t.Errorf("%s, %s, client %d %s: differs by %.2g of the update", name, optimizer, i, how, d)
				}
				worst = max(worst, d)
			}
		}
	}
	lora := func(rank int) job.Adapter { return job.Adapter{RankMin: rank, RankMax: rank} }
	for name, b := range bases(t) {
		if b.Config.PadTokenID != 0 { // RoBERTa's: TestLogitsAgreeWithTheProgram has it
			continue
		}
		check(name, b, lora(4), training.AdamW)
		check(name, b, lora(1), training.SGD)
	}
	b := bases(t)["bert"]
	check("momentum", b, lora(3), training.Momentum)
	check("head", b, job.Adapter{RankMin: 1, RankMax: 1, HeadOnly: true}, training.AdamW)
	check("targets", b, job.Adapter{RankMin: 2, RankMax: 2, Targets: []string{"query", "output.dense"}, Also: []string{"LayerNorm"}}, training.SGD)
	check("full", b, job.Adapter{RankMin: 1, RankMax: 1, Method: string(model.MethodFull)}, training.SGD)
	t.Logf("updates differ by %.2g at most", worst)
	ok(t, errors.Join(hosted.Close(), compiled.Close()))
}

// The result does not depend on the number of workers, and a second run is the
// first, over several rounds and ranks.
func TestWorkersChangeNothing(t *testing.T) {
	e := engine(t)
	b := bases(t)["default"]
	var first []byte
	for _, workers := range []int{1, 3, 3} {
		cfg := config(b, job.Adapter{RankMin: 1, RankMax: 3}, string(training.AdamW), 4)
		cfg.Workers, cfg.Compile = workers, program.Describe
		hosted := hosted.New(e.Backend, workers, program.Read)
		_, adapter := play(t, cfg, hosted)
		ok(t, hosted.Close())
		if first == nil {
			first = adapter
		}
		if !bytes.Equal(adapter, first) {
			t.Errorf("%d workers: another adapter", workers)
		}
	}
}

func TestLogitsAgreeWithTheProgram(t *testing.T) {
	e := engine(t)
	for name, b := range bases(t) {
		lay, err := model.NewLayout(b.Config, model.Method{RMax: 4, Alpha: 4}, 3)
		ok(t, err)
		adapter := model.NewAdapter(lay, 5)
		values := adapter.Slice(4)
		for i := range values {
			values[i] += float32(i%7-3) / 50
		}
		var tokens [][]int32
		for i := range 20 {
			row := make([]int32, 12)
			for k := range row {
				row[k] = int32(b.Config.PadTokenID)
				if k < 4+i%9 {
					row[k] = int32(2 + (i*31+k*17)%(b.Config.VocabSize-2))
				}
			}
			tokens = append(tokens, row)
		}
		want, err := nn.NewPredictor(lay, b, 12, compiler.New())
		ok(t, err)
		got, err := nn.NewPredictor(lay, b, 12, e.Backend)
		ok(t, err)
		w, err := want.Logits(t.Context(), values, 4, tokens)
		ok(t, err)
		g, err := got.Logits(t.Context(), values, 4, tokens)
		ok(t, err)
		for i := range w {
			if d := apart(g[i], w[i]); !(d <= 1e-4) {
				t.Errorf("%s, text %d: %v, the program says %v", name, i, g[i], w[i])
			}
		}
	}
}

func TestPluginsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none.so")
	ok(t, os.WriteFile(none, []byte("no library"), 0o600))
	for path, want := range map[string]string{
		"": "--pjrt", "cpu": "not an absolute path", filepath.Join(dir, "a,tf32=true"): "comma", filepath.Join(dir, "gone"): "no such file", none: "",
	} {
		if _, err := Open(path); !errors.Is(err, ErrPlugin) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

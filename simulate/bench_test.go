package simulate_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/simulate"
)

// timed adds up the processor time that passes within a trainer.
type timed struct {
	trainer.Trainer
	spent atomic.Int64
}

func (t *timed) Train(ctx context.Context, task trainer.Task) ([]float32, error) {
	began := cputime.Now()
	defer func() { t.spent.Add(int64(cputime.Now() - began)) }()
	return t.Trainer.Train(ctx, task)
}

// BenchmarkRound times a round of 100 clients with 16 examples each: one AdamW step of
// 16 x 32 tokens over two layers 128 wide, clipped, quantized, summed, noised. "beyond"
// is the share of its processor time that the steps do not take, with one worker.
func BenchmarkRound(b *testing.B) { workers(b, "") }

// BenchmarkFused is BenchmarkRound with fused multiply-add.
func BenchmarkFused(b *testing.B) { workers(b, "fused") }

func workers(b *testing.B, arithmetic string) {
	b.Run("workers=1", func(b *testing.B) { benchmarkRound(b, 1, arithmetic) })
	b.Run("workers=all", func(b *testing.B) { benchmarkRound(b, runtime.NumCPU(), arithmetic) })
}

func benchmarkRound(b *testing.B, workers int, arithmetic string) {
	c := model.BERT(2048, 128, 2, 4, 32)
	base := tiny.Filled(b, c, 100, tinyBase(b).Tokenizer)
	var clients simulate.Each
	for i := range 100 {
		s := &dataset.Set{Labels: []string{"one", "two"}}
		for k := range 16 {
			s.Examples = append(s.Examples, dataset.Example{Text: strings.Repeat("fox jumps ", 10+(i+k)%10), Label: (i + k) % 2})
		}
		clients = append(clients, s)
	}
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "bench", clients[0].Labels, b.N+1
	j.Adapter.RankMin, j.Adapter.RankMax, j.Adapter.Sequence = 8, 8, 32
	j.Training.Steps, j.Training.Batch, j.Training.Arithmetic = 1, 16, arithmetic
	j.Cohort.Population = len(clients)
	j.Shard.BreachBits = 0
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000
	steps := &timed{Trainer: edge.NewProgramTrainer(workers)}
	defer steps.Close()
	var began, within time.Duration // after the first round, which loads the program
	r, err := simulate.New(simulate.Config{Job: j.ForBase(c), Base: base, Population: clients, Seed: seed, Workers: workers, Trainer: steps,
		Progress: func(r simulate.Round) {
			if r.Number == 1 {
				began, within = cputime.Now(), time.Duration(steps.spent.Load())
				b.ResetTimer()
			}
		}})
	ok(b, err)
	_, err = r.Rounds(b.Context())
	b.StopTimer()
	all, in := cputime.Now()-began, time.Duration(steps.spent.Load())-within
	ok(b, errors.Join(err, r.Close()))
	b.ReportMetric(float64(all)/float64(b.N), "cpu-ns/op")
	if workers == 1 {
		b.ReportMetric(float64(all-in)/float64(all), "beyond")
	}
}

//go:build xla && cgo

package xla

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn/hosted"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/simulate"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/program"
)

// timed adds up the time that passes within a trainer, once it has trained for the first
// time: what it compiles and loads comes before.
type timed struct {
	trainer.Trainer
	trained   int
	wall, cpu time.Duration
}

func (t *timed) Train(ctx context.Context, task trainer.Task) ([]float32, error) {
	began, spent := time.Now(), cputime.Now()
	delta, err := t.Trainer.Train(ctx, task)
	if t.trained++; t.trained > 1 {
		t.wall, t.cpu = t.wall+time.Since(began), t.cpu+cputime.Now()-spent
	}
	return delta, err
}

// BenchmarkMiniLM times AdamW steps of 8 x 32 tokens over six layers 384 wide with LoRA
// of rank 8: in the compiled program with nothing but its own code, with this host's
// kernels for its products, in that of fused arithmetic, and on XLA, which take turns.
// XLA has a thread for each processor that the process may use, the program
// one a client.
func BenchmarkMiniLM(b *testing.B) {
	e := engine(b)
	c := model.BERT(30522, 384, 6, 12, 64)
	base := tiny.Filled(b, c, 100, bases(b)["default"].Tokenizer)
	alone := edge.NewProgramTrainer(1)
	alone.Kernel = wasm.Twin
	engines := []struct {
		name       string
		arithmetic string
		trainer    trainer.Trainer
		compile    program.Compile
	}{
		{"program", "", alone, program.Step},
		{"exact", "", edge.NewProgramTrainer(1), program.Step},
		{"fused", "fused", edge.NewProgramTrainer(1), program.Step},
		{"xla", "", hosted.New(e.Backend, 1, program.Read), program.Describe},
	}
	const steps, clients = 4, 4
	times := make([]timed, len(engines))
	for range b.N {
		for i, with := range engines {
			t := &timed{Trainer: with.trainer}
			cfg := config(base, job.Adapter{RankMin: 8, RankMax: 8}, string(training.AdamW), 1)
			cfg.Job.Adapter.Sequence, cfg.Job.Training.Batch, cfg.Job.Training.Steps = 32, 8, steps
			cfg.Job.Training.Arithmetic = with.arithmetic
			cfg.Trainer, cfg.Compile = t, with.compile
			for _, client := range cfg.Population.(simulate.Each) {
				for i := range client.Examples {
					client.Examples[i].Text += strings.Repeat(" water", 32) // no padding: the program leaves it out, XLA does not
				}
			}
			run, err := simulate.New(cfg)
			ok(b, err)
			_, err = run.Rounds(b.Context())
			ok(b, errors.Join(err, run.Close()))
			times[i].wall += t.wall / (steps * (clients - 1))
			times[i].cpu += t.cpu / (steps * (clients - 1))
		}
	}
	per := func(d time.Duration) float64 { return float64(d) / float64(b.N) / 1e6 }
	for i, with := range engines {
		ok(b, with.trainer.Close())
		b.ReportMetric(per(times[i].cpu), with.name+"-cpu-ms")
		b.ReportMetric(per(times[i].wall), with.name+"-wall-ms")
	}
}

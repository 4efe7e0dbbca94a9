//go:build xla && cgo

package xla

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/cputime"
	"github.com/starling-fl/starling/internal/tiny"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/simulate"
	"github.com/starling-fl/starling/trainer"
)

// timed adds up the processor time that passes within a trainer, once it has trained
// for the first time: what it compiles and loads comes before.
type timed struct {
	trainer.Trainer
	trained int
	spent   time.Duration
}

func (t *timed) Train(ctx context.Context, task trainer.Task) ([]float32, error) {
	began := cputime.Now()
	delta, err := t.Trainer.Train(ctx, task)
	if t.trained++; t.trained > 1 {
		t.spent += cputime.Now() - began
	}
	return delta, err
}

// BenchmarkMiniLM times AdamW steps of 8 x 32 tokens over six layers 384 wide with LoRA
// of rank 8, in the compiled program and on XLA: "ratio" is the program's processor
// time over XLA's.
func BenchmarkMiniLM(b *testing.B) {
	e := engine(b)
	c := model.BERT(30522, 384, 6, 12, 64)
	base := tiny.Filled(b, c, 100, bases(b)["default"].Tokenizer)
	step := func(with trainer.Trainer, compile coordinator.Compile) float64 {
		t := &timed{Trainer: with}
		cfg := config(base, job.Adapter{RankMin: 8, RankMax: 8}, string(nn.AdamW), b.N)
		cfg.Job.Adapter.Sequence, cfg.Job.Training.Batch, cfg.Job.Training.Steps = 32, 8, 2
		cfg.Trainer, cfg.Compile = t, compile
		run, err := simulate.New(cfg)
		ok(b, err)
		_, err = run.Rounds(b.Context())
		ok(b, errors.Join(err, run.Close(), with.Close()))
		return float64(t.spent) / float64(2*(t.trained-1))
	}
	program := step(edge.NewProgramTrainer(1), coordinator.CompileStep)
	hosted := step(nn.NewHosted(e.Backend, 1, coordinator.ReadStep), coordinator.DescribeStep)
	b.ReportMetric(program/1e6, "program-cpu-ms")
	b.ReportMetric(hosted/1e6, "xla-cpu-ms")
	b.ReportMetric(program/hosted, "ratio")
}

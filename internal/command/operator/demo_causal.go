package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/evaluate"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/fleetdata"
	"github.com/starling-fl/starling/internal/outcome"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base/llama"
	"github.com/starling-fl/starling/wasm/compiler"
)

// commandTokens is the length of a command with its call, in tokens.
const commandTokens = 48

// writingBase is the base that a demo of texts that are written names, or the embedded one.
func (f demoFlags) writingBase(j *coordinator.Job) (*model.Base, error) {
	if f.headOnly || f.record != "" {
		return nil, command.Usagef("--task causal has no head: --head-only and --record are not for it")
	}
	if f.data == "" {
		j.Adapter.Sequence = commandTokens
	}
	if j.Base == "" {
		j.Adapter.Targets = []string{model.AllLinear}
		// What speakers have to themselves is many words, which few examples of a round tell of.
		j.Training.Steps = 8
		return llama.Commands()
	}
	b, err := command.LoadBase(j.Base)
	if err == nil && !b.Config.Causal() {
		err = command.Usagef("--base %s is a %s: --task causal needs a base that writes on what it reads, as a llama does", f.base, b.Config.ModelType)
	}
	return b, err
}

// written is what a base and its adapter write behind a demo's prompts.
type written struct {
	test   *evaluate.Completions
	before evaluate.CompletionScore
}

// newWritten lets the base write behind the test split's prompts; nil if nothing is written.
func newWritten(ctx context.Context, a *command.App, j coordinator.Job, b *model.Base, layout *model.Layout, data *fleetdata.Data) (*written, error) {
	if layout.Method.Task != model.TaskCausal {
		return nil, nil
	}
	test, err := evaluate.NewCompletions(compiler.New(), b, layout, j.Adapter.Sequence, data.Test)
	if test == nil || err != nil {
		return nil, err
	}
	w := &written{test: test}
	if w.before, err = test.Score(ctx, model.NewAdapter(layout, 0).Slice(0), 0, nil); err != nil {
		return nil, err
	}
	fmt.Fprintf(a.Stderr, "before: exact match %.1f %% of %d completions by people whom nobody has heard\n", 100*w.before.ExactMatch, test.Len())
	return w, nil
}

// report says what is written behind the same prompts with the released adapter.
func (w *written) report(ctx context.Context, a *command.App, r outcome.Report, adapter *model.Adapter, began time.Time) error {
	after, err := w.test.Score(ctx, adapter.Slice(r.BestRank), r.BestRank, nil)
	if err != nil {
		return err
	}
	r.Seconds = time.Since(began).Seconds()
	out := outcome.WrittenReport{Report: r, Before: w.before, After: after}
	return a.Emit(out, out.Print)
}

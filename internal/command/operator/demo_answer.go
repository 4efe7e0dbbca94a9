package operator

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/evaluation"
	"github.com/starling-fl/starling/internal/fleetdata"
	"github.com/starling-fl/starling/internal/outcome"
	"github.com/starling-fl/starling/internal/progress"
	"github.com/starling-fl/starling/internal/sim"
	"github.com/starling-fl/starling/model"
)

// Lengths of a document with its question, and of an answer, in tokens.
const (
	documentTokens = 96
	AnswerTokens   = 16
)

// runAnswerDemo is runDemo for task answer.
func runAnswerDemo(ctx context.Context, a *command.App, f demoFlags) error {
	if f.data != "" || f.headOnly || f.record != "" || f.start != "" || f.everyRank {
		return command.Usagef("--task answer makes its own documents, and has no head: --data, --start, --head-only, --record and --test-every-rank are not for it")
	}
	b, err := command.LoadDocumentBase(f.base)
	if err != nil {
		return err
	}
	if !b.Config.Generates() {
		return command.Usagef("--base %s is a %s: --task answer needs a base that writes text, a t5", f.base, b.Config.ModelType)
	}
	_, looks := b.Config.T5.Page()
	data, err := fleetdata.Questions(f.seed, f.clients, looks)
	if err != nil {
		return err
	}
	j, err := f.job(data)
	if err != nil {
		return err
	}
	j.Task, j.Labels = model.TaskAnswer.String(), nil
	j.Adapter.Sequence, j.Adapter.Answer = documentTokens, AnswerTokens
	began := time.Now()
	j = j.ForBase(b.Config)
	layout, err := outcome.Layout(j, b)
	if err != nil {
		return err
	}
	splits, err := evaluation.NewQuestions(b, layout, documentTokens, data.Validation, data.Test)
	if err != nil {
		return err
	}
	dir := filepath.Join(f.out, began.Format("20060102-150405"))
	if err := command.EnsureDir(dir); err != nil {
		return err
	}
	view := progress.NewView(a.Stderr, j, splits.Note())
	cfg := f.fleet(a, coordinator.Config{Job: j, Dir: dir, Base: b, Progress: view.Show}, data)
	splits.Choose(&cfg.Coordinator)
	before, err := splits.Test.Score(ctx, model.NewAdapter(layout, 0), 0)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "before: exact match %.1f %%, ANLS %.1f on senders that nobody has seen\n", 100*before.ExactMatch, 100*before.ANLS)
	result, err := sim.Run(ctx, cfg)
	if err != nil {
		return err
	}
	r := outcome.Report{Task: data.Name, Devices: len(data.Clients)}
	r.Settle(j, result.Result)
	r.CountTraffic(result.Traffic)
	out, err := splits.After(ctx, r, before, result.Result)
	if err != nil {
		return err
	}
	out.Seconds = time.Since(began).Seconds()
	return a.Emit(out, out.Print)
}

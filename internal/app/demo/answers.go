package demo

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/internal/app/progress"
	"github.com/starling-fl/starling/internal/app/sim"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/model"
)

// Lengths of a document with its question, and of an answer, in tokens.
const (
	documentTokens = 96
	AnswerTokens   = 16
)

// runAnswers is Run for task answer.
func (f Config) runAnswers(ctx context.Context, told io.Writer) (evaluation.Printer, error) {
	if f.Data != "" || f.HeadOnly || f.Record != "" || f.Start != "" || f.EveryRank {
		return nil, usage.Errorf("--task answer makes its own documents, and has no head: --data, --start, --head-only, --record and --test-every-rank are not for it")
	}
	b, err := bases.ForDocuments(f.Base)
	if err != nil {
		return nil, err
	}
	if !b.Config.Generates() {
		return nil, usage.Errorf("--base %s is a %s: --task answer needs a base that writes text, a t5", f.Base, b.Config.ModelType)
	}
	_, looks := b.Config.T5.Page()
	data, err := fleetdata.Questions(f.Seed, f.Clients, looks)
	if err != nil {
		return nil, err
	}
	j, err := f.Job(data)
	if err != nil {
		return nil, err
	}
	j.Task, j.Labels = model.TaskAnswer.String(), nil
	j.Adapter.Sequence, j.Adapter.Answer = documentTokens, AnswerTokens
	began := time.Now()
	j = j.ForBase(b.Config)
	layout, err := outcome.Layout(j, b)
	if err != nil {
		return nil, err
	}
	splits, err := evaluation.NewQuestions(b, layout, documentTokens, data.Validation, data.Test)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(f.Out, began.Format("20060102-150405"))
	if err := named.MakeDir(dir); err != nil {
		return nil, err
	}
	view := progress.NewView(told, j, splits.Note())
	cfg := f.fleet(told, coordinator.Config{Job: j, Dir: dir, Base: b, Progress: view.Show}, data)
	splits.Choose(&cfg.Coordinator)
	before, err := splits.Test.Score(ctx, model.NewAdapter(layout, 0), 0)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(told, "before: exact match %.1f %%, ANLS %.1f on unseen senders\n", 100*before.ExactMatch, 100*before.ANLS)
	result, err := sim.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r := outcome.Report{Task: data.Name, Devices: len(data.Clients)}
	r.Settle(j, result.Result)
	r.CountTraffic(result.Traffic)
	out, err := splits.After(ctx, r, before, result.Result)
	if err != nil {
		return nil, err
	}
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

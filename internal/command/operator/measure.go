package operator

import (
	"context"
	"fmt"
	"strconv"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/evaluate"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/outcome"
	"github.com/starling-fl/starling/internal/progress"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// measures are a served job's public files, as its task scores them.
type measures interface {
	// choose lets the validation split, and nothing else, measure a coordinator's
	// rounds.
	choose(cfg *coordinator.Config)
	liveNote() string                       // what the rounds' accuracies are measured on
	learning(rounds int) *progress.Learning // watches them; nil if nothing does
	// report emits what a finished job says of itself; result is the coordinator's.
	report(ctx context.Context, a *command.App, r outcome.Report, layout *model.Layout, result monitor.Result, everyRank bool) error
}

// measures reads the public files as the job's task wants them.
func (f serveFlags) measures(j job.Job, b *model.Base, layout *model.Layout) (measures, error) {
	validation, err := loadPublic(f.validation, f.columns, j.Labels)
	if err != nil {
		return nil, err
	}
	test, err := loadPublic(f.test, f.columns, j.Labels)
	if err != nil {
		return nil, err
	}
	if !layout.Method.Task.Asks() {
		return newScores(b, layout, j.Adapter.Sequence, validation, test)
	}
	on, err := evaluate.NewQuestions(compiler.New(), b, layout, j.Adapter.Sequence, validation, test)
	if err != nil {
		return nil, err
	}
	return answerScores{on[0], on[1]}, nil
}

func (s scores) report(ctx context.Context, a *command.App, r outcome.Report, layout *model.Layout, result monitor.Result, everyRank bool) error {
	if s.test != nil && s.validation != nil {
		if err := r.Measure(ctx, layout, result, s.test, everyRank); err != nil {
			return err
		}
	}
	return a.Emit(r, r.Print)
}

// answerScores are scores for a job that answers questions.
type answerScores struct{ validation, test *evaluate.Questions }

func (s answerScores) choose(cfg *coordinator.Config) {
	if s.validation != nil {
		cfg.Evaluator, cfg.Live = s.validation, s.validation.Sample(liveQuestions)
	}
}

func (s answerScores) liveNote() string {
	if s.validation == nil {
		return ""
	}
	return fmt.Sprintf("accuracy is exact match: on %d of the %d validation questions while rounds run, on all of them at the end",
		min(liveQuestions, len(s.validation.Truths)), len(s.validation.Truths))
}

func (s answerScores) learning(int) *progress.Learning { return nil } // there is no commonest label

func (s answerScores) report(ctx context.Context, a *command.App, r outcome.Report, layout *model.Layout, result monitor.Result, everyRank bool) error {
	if s.test == nil || s.validation == nil {
		return a.Emit(r, r.Print)
	}
	before, err := s.test.Score(ctx, model.NewAdapter(layout, 0), 0)
	if err != nil {
		return err
	}
	out, err := s.after(ctx, r, before, result)
	if err != nil {
		return err
	}
	return a.Emit(out, out.Print)
}

// after makes a report of what a job has released, beside the base's own score.
func (s answerScores) after(ctx context.Context, r outcome.Report, before evaluate.AnswerScore, result monitor.Result) (outcome.AnswerReport, error) {
	out := outcome.AnswerReport{Report: r, Before: before, Validations: len(s.validation.Truths), Questions: len(s.test.Truths)}
	out.Validation, out.BestRank = map[string]float64{}, result.BestRank
	for _, v := range result.Validation {
		out.Validation[strconv.Itoa(v.Rank)] = v.Accuracy
	}
	var err error
	out.After, err = s.test.Score(ctx, result.Adapter, out.BestRank)
	out.BaseAccuracy, out.BestAccuracy = before.ExactMatch, out.After.ExactMatch
	return out, err
}

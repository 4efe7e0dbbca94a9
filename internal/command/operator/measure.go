package operator

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/dataset"
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

// measuresOf reads the public files, "" for none, as the job's task wants them.
func measuresOf(validationFile, testFile string, columns dataset.Columns, j job.Job, b *model.Base) (measures, error) {
	layout, err := outcome.Layout(j, b)
	if err != nil {
		return nil, err
	}
	validation, err := loadPublic(validationFile, columns, j.Labels)
	if err != nil {
		return nil, err
	}
	test, err := loadPublic(testFile, columns, j.Labels)
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

// publicFolder is where a server of several jobs has the files that measure them: an operator who
// submits a job from elsewhere has no other file of the server read.
const publicFolder = "public"

// publicFile is where in a server's folder a job's validation_file lies.
func publicFile(dir, name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("validation_file is %.80q: one of a server's jobs names a file in %s/ of the server's folder, from there on", name, publicFolder)
	}
	return filepath.Join(dir, publicFolder, name), nil
}

// measureHosted has one of a server's jobs measured on its validation_file, if it has one.
func measureHosted(cfg *coordinator.Config, dir string) error {
	if cfg.Job.ValidationFile == "" {
		return nil
	}
	path, err := publicFile(dir, cfg.Job.ValidationFile)
	if err != nil {
		return err
	}
	m, err := measuresOf(path, "", dataset.Columns{}, cfg.Job.ForBase(cfg.Base.Config), cfg.Base)
	if err != nil {
		return fmt.Errorf("validation_file: %w", err)
	}
	m.choose(cfg)
	return nil
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

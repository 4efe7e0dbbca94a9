package evaluation

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/internal/app/progress"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate"
	"github.com/starling-fl/starling/wasm/compiler"
)

// Splits are a job's public validation and test examples, as its task scores them.
type Splits interface {
	// Choose lets the validation split, and nothing else, measure a coordinator's rounds.
	Choose(cfg *coordinator.Config)
	// Note says what the accuracies of the rounds are measured on; "" where that needs no word.
	Note() string
	// Learning watches the rounds' accuracies; nil where nothing measures them.
	Learning(rounds int) *progress.Learning
	// Report scores what a finished job has released, which r describes and result holds. With everyRank the test
	// split is scored at each rank, else at the one that validation chose.
	Report(ctx context.Context, r outcome.Report, layout *model.Layout, result monitor.Result, everyRank bool) (Printer, error)
}

// A Printer is a report that encodes as JSON, and that people can read.
type Printer interface{ Print(w io.Writer) error }

// newSplits returns the splits, each nil if there is none, of a job of the layout's task whose examples have sequence tokens.
func newSplits(b *model.Base, layout *model.Layout, sequence int, validation, test *dataset.Set) (Splits, error) {
	if layout.Method.Task.Asks() {
		return NewQuestions(b, layout, sequence, validation, test)
	}
	return NewLabelled(b, layout, sequence, validation, test)
}

// ReadSplits reads the public files as the job's task wants them: those of --validation, in place of the job's
// validation_file, and of --test; "" for none.
func ReadSplits(validationFile, testFile string, columns dataset.Columns, j job.Job, b *model.Base) (Splits, error) {
	layout, err := outcome.Layout(j, b)
	if err != nil {
		return nil, err
	}
	source := "--validation"
	if validationFile == "" {
		source, validationFile = "validation_file", j.ValidationFile
	}
	validation, err := ReadPublic(validationFile, columns, j.Labels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	test, err := ReadPublic(testFile, columns, j.Labels)
	if err != nil {
		return nil, fmt.Errorf("--test: %w", err)
	}
	return newSplits(b, layout, j.Adapter.Sequence, validation, test)
}

// ReadPublic reads a public set over the job's labels; nil for no path.
func ReadPublic(path string, columns dataset.Columns, labels []string) (*dataset.Set, error) {
	if path == "" {
		return nil, nil
	}
	set, err := columns.Load(path)
	if err != nil {
		return nil, err
	}
	return set.Relabel(labels)
}

// Labelled are the splits of a job whose examples have labels or tokens that are right.
type Labelled struct{ Validation, Test *evaluate.Labelled }

// NewLabelled returns the evaluators of both splits; nil for a missing split.
func NewLabelled(b *model.Base, layout *model.Layout, sequence int, validation, test *dataset.Set) (Labelled, error) {
	e, err := evaluate.NewLabelled(compiler.New(), b, layout, sequence, validation, test)
	if err != nil {
		return Labelled{}, err
	}
	return Labelled{e[0], e[1]}, nil
}

// Choose lets the validation split measure a coordinator's rounds, a sample of it while they run.
func (s Labelled) Choose(cfg *coordinator.Config) {
	if s.Validation != nil {
		cfg.Evaluator, cfg.Live = s.Validation, s.Validation.Sample(LiveExamples)
	}
}

// Note says on how many examples the rounds are measured, where those are not all.
func (s Labelled) Note() string {
	if s.Validation == nil || len(s.Validation.Examples) <= LiveExamples {
		return ""
	}
	return fmt.Sprintf("accuracy: on %d of the %d validation %s while rounds run, on all of them at the end",
		LiveExamples, len(s.Validation.Examples), Called(s.Validation.Examples))
}

// Learning compares the rounds' accuracies with that of the commonest label.
func (s Labelled) Learning(rounds int) *progress.Learning {
	if s.Validation == nil {
		return nil
	}
	live := s.Validation.Sample(LiveExamples)
	return progress.NewLearning(live.MajorityAccuracy(), len(live.Right), rounds)
}

// Report scores the test split, where both splits are there.
func (s Labelled) Report(ctx context.Context, r outcome.Report, layout *model.Layout, result monitor.Result, everyRank bool) (Printer, error) {
	if s.Test != nil && s.Validation != nil {
		if err := r.Measure(ctx, layout, result, s.Test, everyRank); err != nil {
			return nil, err
		}
		if err := r.Refer(ctx, layout, outcome.OnValidation, s.Validation.Set(), s.Test.Set()); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// LiveExamples is the number of validation examples that score an adapter while rounds run: the standard error of
// an accuracy is then below 4.5 %, and a round does not wait. All examples score the last adapter.
const LiveExamples = 128

// LiveQuestions is the number of validation questions that score an adapter while rounds run.
const LiveQuestions = 48

// Questions are the splits of a job that answers questions.
type Questions struct{ Validation, Test *evaluate.Questions }

// NewQuestions returns the evaluators of both splits; nil for a missing split.
func NewQuestions(b *model.Base, layout *model.Layout, sequence int, validation, test *dataset.Set) (Questions, error) {
	e, err := evaluate.NewQuestions(compiler.New(), b, layout, sequence, validation, test)
	if err != nil {
		return Questions{}, err
	}
	return Questions{e[0], e[1]}, nil
}

// Choose lets the validation split measure a coordinator's rounds, a sample of it while they run.
func (s Questions) Choose(cfg *coordinator.Config) {
	if s.Validation != nil {
		cfg.Evaluator, cfg.Live = s.Validation, s.Validation.Sample(LiveQuestions)
	}
}

// Note says that accuracy is exact match, and on how many questions the rounds are measured.
func (s Questions) Note() string {
	if s.Validation == nil {
		return ""
	}
	return fmt.Sprintf("accuracy is exact match: on %d of the %d validation questions while rounds run, on all of them at the end",
		min(LiveQuestions, len(s.Validation.Truths)), len(s.Validation.Truths))
}

// Learning is nil: there is no commonest label.
func (s Questions) Learning(int) *progress.Learning { return nil }

// Report scores base and released adapter on the test split, where both splits are there.
func (s Questions) Report(ctx context.Context, r outcome.Report, layout *model.Layout, result monitor.Result, _ bool) (Printer, error) {
	if s.Test == nil || s.Validation == nil {
		return r, nil
	}
	before, err := s.Test.Score(ctx, model.NewAdapter(layout, 0), 0)
	if err != nil {
		return nil, err
	}
	after, err := s.After(ctx, r, before, result)
	if err != nil {
		return nil, err // a score that ended early is no result
	}
	return after, nil
}

// After reports the scores of a job's release and of its base on the test split.
func (s Questions) After(ctx context.Context, r outcome.Report, before evaluate.AnswerScore, result monitor.Result) (outcome.AnswerReport, error) {
	out := outcome.AnswerReport{Report: r, Before: before, Validations: len(s.Validation.Truths), Questions: len(s.Test.Truths)}
	out.Validation, out.BestRank = map[string]float64{}, result.BestRank
	for _, v := range result.Validation {
		out.Validation[strconv.Itoa(v.Rank)] = v.Accuracy
	}
	var err error
	out.After, err = s.Test.Score(ctx, result.Adapter, out.BestRank)
	out.BaseAccuracy, out.BestAccuracy = before.ExactMatch, out.After.ExactMatch
	return out, err
}

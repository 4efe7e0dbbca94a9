package operator

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/evaluate"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/engine"
	"github.com/starling-fl/starling/internal/terminal"
	"github.com/starling-fl/starling/model"
)

// answerChunk is how many questions are read before they are answered.
const answerChunk = 32

// Answered is what a model says to a question.
type Answered struct {
	Line        int     `json:"line"` // of the file, from 1
	Question    string  `json:"question"`
	Answer      string  `json:"answer"`
	Probability float64 `json:"probability"` // not calibrated
}

// predictAnswers answers the questions of a file of JSON Lines, one a line.
func predictAnswers(ctx context.Context, a *command.App, e engine.Engine, ck *model.Checkpoint, rank int, in io.Reader, name string) error {
	r, err := evaluate.NewResponder(e.Backend, ck.Base, ck.Adapter.Layout(), ck.Seq)
	if err != nil {
		return fmt.Errorf("the checkpoint: %w", err)
	}
	slice := ck.Adapter.Slice(rank)
	p := predictions{a, answerChunk, "questions", func(examples []dataset.Example) ([]said, error) {
		replies, err := r.Answer(ctx, slice, rank, examples)
		if err != nil {
			return nil, err
		}
		out := make([]said, len(replies))
		for i, re := range replies {
			e := &examples[i]
			// An answer keeps to its line.
			out[i] = said{Answered{e.Line, e.Question, re.Text, re.Probability}, terminal.Visible(strings.Join(strings.Fields(re.Text), " "), "") + "\n"}
		}
		return out, nil
	}}
	return p.of(func(take func(dataset.Example) error) error { return dataset.Questions(in, name, take) })
}

// AnswerEvaluation scores a released adapter on a file of questions.
type AnswerEvaluation struct {
	File      string            `json:"file"`
	Engine    string            `json:"engine"`
	Questions int               `json:"questions"`
	Ranks     []rankAnswerScore `json:"ranks"`
	Best      int               `json:"best_rank"` // that validation chose; 0 where none was
}

type rankAnswerScore struct {
	Rank int `json:"rank"`
	AnswerScore
}

// evaluateAnswers scores the ranks on a set, and says how far it is where that takes
// long.
func evaluateAnswers(ctx context.Context, a *command.App, with engine.Engine, ck *model.Checkpoint, set *dataset.Set, ranks []int) error {
	on, err := evaluate.NewQuestions(with.Backend, ck.Base, ck.Adapter.Layout(), ck.Seq, set)
	if err != nil {
		return err
	}
	e := on[0]
	report := AnswerEvaluation{File: set.Name, Engine: with.Name, Questions: len(e.Truths), Best: ck.BestRank}
	told := terminal.NewCountdown(a.Stderr, "questions", len(ranks)*len(e.Examples))
	for n, rank := range ranks {
		var replies []reply
		slice := ck.Adapter.Slice(rank)
		for at := 0; at < len(e.Examples); at += answerChunk {
			part, err := e.Answer(ctx, slice, rank, e.Examples[at:min(at+answerChunk, len(e.Examples))])
			if err != nil {
				return err
			}
			replies = append(replies, part...)
			told.Reach(n*len(e.Examples) + len(replies))
		}
		report.Ranks = append(report.Ranks, rankAnswerScore{rank, evaluate.ScoreReplies(replies, e.Truths)})
	}
	return a.Emit(report, report.print)
}

func (r AnswerEvaluation) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d questions of %s\n\n  rank  exact match  token F1   ANLS  confidence\n", r.Questions, r.File)
	for _, s := range r.Ranks {
		mark := ""
		if s.Rank == r.Best && len(r.Ranks) > 1 {
			mark = "  chosen by validation"
		}
		fmt.Fprintf(&b, "  %4d  %9.1f %%  %8.1f  %5.1f  %10.2f%s\n", s.Rank, 100*s.ExactMatch, 100*s.TokenF1, 100*s.ANLS, s.Confidence, mark)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

package evaluation

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/predict"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate"
	"github.com/starling-fl/starling/model/evaluate/answer"
)

// AnswerReport scores a released adapter on a file of questions.
type AnswerReport struct {
	File      string            `json:"file"`
	Engine    string            `json:"engine"`
	Questions int               `json:"questions"`
	Ranks     []rankAnswerScore `json:"ranks"`
	Best      int               `json:"best_rank"` // that validation chose; 0 where none was
}

type rankAnswerScore struct {
	Rank int `json:"rank"`
	evaluate.AnswerScore
}

// Answers scores the ranks on a set, and says how far it is where that takes
// long.
func Answers(ctx context.Context, to *terminal.Streams, with engine.Engine, ck *model.Checkpoint, set *dataset.Set, ranks []int) error {
	on, err := evaluate.NewQuestions(with.Backend, ck.Base, ck.Adapter.Layout(), ck.Seq, set)
	if err != nil {
		return err
	}
	e := on[0]
	report := AnswerReport{File: set.Name, Engine: with.Name, Questions: len(e.Truths), Best: ck.BestRank}
	told := terminal.NewCountdown(to.Stderr, "questions", len(ranks)*len(e.Examples))
	for n, rank := range ranks {
		var replies []answer.Reply
		slice := ck.Adapter.Slice(rank)
		for at := 0; at < len(e.Examples); at += predict.AnswerChunk {
			part, err := e.Answer(ctx, slice, rank, e.Examples[at:min(at+predict.AnswerChunk, len(e.Examples))])
			if err != nil {
				return err
			}
			replies = append(replies, part...)
			told.Reach(n*len(e.Examples) + len(replies))
		}
		report.Ranks = append(report.Ranks, rankAnswerScore{rank, e.Judge(replies)})
	}
	return to.Emit(report, report.print)
}

func (r AnswerReport) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d questions of %s\n\n  rank  exact match  token F1   ANLS  confidence\n", r.Questions, r.File)
	for _, s := range r.Ranks {
		mark := ""
		if s.Rank == r.Best && len(r.Ranks) > 1 {
			mark = "  chosen by validation"
		}
		fmt.Fprintf(&b, "  %4d  %9.1f %%  %8.1f  %5.1f  %10.2f%s\n", s.Rank, 100*s.ExactMatch, 100*s.TokenF1, 100*s.ANLS, s.Confidence, mark)
	}
	r.printSources(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// printSources prints the scores of each data set, where the file names several.
func (r AnswerReport) printSources(b *strings.Builder) {
	for _, s := range r.Ranks {
		if len(s.Sources) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n  rank %d, by source    exact match  token F1   ANLS\n", s.Rank)
		for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
			of := s.Sources[name]
			fmt.Fprintf(b, "  %-20.20s  %9.1f %%  %8.1f  %5.1f\n", name, 100*of.ExactMatch, 100*of.TokenF1, 100*of.ANLS)
		}
		fmt.Fprintf(b, "  %-20s  %9.1f %%  %8.1f  %5.1f\n", "mean of the sources",
			100*s.MeanOverSources(func(x evaluate.AnswerScore) float64 { return x.ExactMatch }),
			100*s.MeanOverSources(func(x evaluate.AnswerScore) float64 { return x.TokenF1 }),
			100*s.MeanOverSources(func(x evaluate.AnswerScore) float64 { return x.ANLS }))
	}
}

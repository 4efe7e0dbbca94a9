// Package evaluation scores a released adapter on a file, rank by rank, for people and as JSON.
package evaluation

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/predict"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate"
)

// Report scores a released adapter on a labelled file.
type Report struct {
	File   string      `json:"file"`
	Engine string      `json:"engine"`
	Texts  int         `json:"texts"`
	Ranks  []rankScore `json:"ranks"`
	Best   int         `json:"best_rank"` // that validation chose; 0 where none was

	What  string `json:"-"` // texts, or images, for people
	Beams int    `json:"-"` // of a search for what is said in recordings
}

// rankScore is one rank's score and that of each class.
type rankScore struct {
	Rank int `json:"rank"`
	evaluate.Score
	Classes                   []classScore `json:"classes"`
	*evaluate.CompletionScore              // of prompts with completions
}

type classScore struct {
	Label     string  `json:"label"`
	Texts     int     `json:"texts"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// Measure labels the texts in parts, and says how far it is where that takes long.
func (r *Report) Measure(ctx context.Context, with engine.Engine, ck *model.Checkpoint, set *dataset.Set, ranks []int, told io.Writer) error {
	all, err := evaluate.NewLabelled(with.Backend, ck.Base, ck.Adapter.Layout(), ck.Seq, set)
	if err != nil {
		return err
	}
	e, err := all[0].Beams(r.Beams)
	if err != nil {
		return err
	}
	written, err := evaluate.NewCompletions(with.Backend, ck.Base, ck.Adapter.Layout(), ck.Seq, set)
	if err != nil {
		return err
	}
	count := terminal.NewCountdown(told, r.What, len(ranks)*len(e.Examples))
	for n, rank := range ranks {
		var predicted [][]int
		loss := 0.0
		slice := ck.Adapter.Slice(rank)
		for at := 0; at < len(e.Examples); at += predict.Chunk {
			part, sum, err := e.Predict(ctx, slice, rank, at, min(at+predict.Chunk, len(e.Examples)))
			if err != nil {
				return err
			}
			predicted, loss = append(predicted, part...), loss+sum
			count.Reach(n*len(e.Examples) + min(at+predict.Chunk, len(e.Examples)))
		}
		r.Ranks = append(r.Ranks, rankScore{rank, e.Scored(predicted, loss), classScores(predicted, e.Right, ck.Labels), nil})
	}
	if written != nil {
		return r.write(ctx, ck, written, told)
	}
	return nil
}

// write lets the model write behind the prompts, and holds that to what is right.
func (r *Report) write(ctx context.Context, ck *model.Checkpoint, c *evaluate.Completions, told io.Writer) error {
	count := terminal.NewCountdown(told, "completions", len(r.Ranks)*c.Len())
	for i := range r.Ranks {
		at := &r.Ranks[i]
		s, err := c.Score(ctx, ck.Adapter.Slice(at.Rank), at.Rank, func(done int) { count.Reach(i*c.Len() + done) })
		if err != nil {
			return err
		}
		at.CompletionScore = &s
		at.Notes = append(at.Notes, fmt.Sprintf("written: exact match %.1f %%, ROUGE-L %.3f, the same JSON %.1f %% of %d completions",
			100*s.ExactMatch, s.RougeL, 100*s.SameJSON, s.Completions))
	}
	return nil
}

// classScores is precision, recall and F1 of every class; 0 if nothing was said
// or there is nothing to find.
func classScores(said, right [][]int, names []string) []classScore {
	out := make([]classScore, len(names))
	if len(names) == 0 {
		return out
	}
	for i, c := range task.Count(said, right, len(names)) {
		out[i] = classScore{names[i], c.Actual, c.Precision(), c.Recall(), c.F1()}
	}
	return out
}

func (r Report) Print(w io.Writer) error {
	var b strings.Builder
	heads, transcribed := "accuracy  macro-F1", len(r.Ranks) > 0 && r.Ranks[0].WordErrors != nil
	if transcribed {
		heads = "word errors  character errors"
	}
	fmt.Fprintf(&b, "%d %s of %s\n\n  rank  %s\n", r.Texts, r.What, r.File, heads)
	for _, s := range r.Ranks {
		mark := ""
		if s.Rank == r.Best && len(r.Ranks) > 1 {
			mark = "  chosen by validation"
		}
		if transcribed {
			fmt.Fprintf(&b, "  %4d  %9.1f %%  %14.1f %%%s\n", s.Rank, 100**s.WordErrors, 100**s.CharacterErrors, mark)
		} else {
			fmt.Fprintf(&b, "  %4d  %6.1f %%  %6.1f %%%s\n", s.Rank, 100*s.Accuracy, 100*s.MacroF1, mark)
		}
		for _, note := range s.Notes {
			fmt.Fprintf(&b, "        %s\n", note)
		}
	}
	if len(r.Ranks) == 1 && len(r.Ranks[0].Classes) > 0 {
		fmt.Fprintf(&b, "\n  %-24s %6s  precision  recall      F1\n", "class", r.What)
		for _, c := range r.Ranks[0].Classes {
			fmt.Fprintf(&b, "  %-24s %6d   %6.1f %% %5.1f %% %5.1f %%\n", c.Label, c.Texts, 100*c.Precision, 100*c.Recall, 100*c.F1)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Called returns the word for examples in messages.
func Called(examples []dataset.Example) string {
	if len(examples) > 0 && examples[0].Image != nil {
		return "images"
	}
	if len(examples) > 0 && examples[0].Recording != nil {
		return "recordings"
	}
	return "texts"
}

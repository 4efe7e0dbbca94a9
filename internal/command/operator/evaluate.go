package operator

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/evaluate"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/engine"
	"github.com/starling-fl/starling/internal/engine/plugins"
	"github.com/starling-fl/starling/internal/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
)

// EvaluateReport scores a released adapter on a labelled file.
type EvaluateReport struct {
	File   string      `json:"file"`
	Engine string      `json:"engine"`
	Texts  int         `json:"texts"`
	Ranks  []rankScore `json:"ranks"`
	Best   int         `json:"best_rank"` // that validation chose; 0 where none was

	what string // texts, or images, for people
}

// rankScore is one rank's score and that of each class.
type rankScore struct {
	Rank int `json:"rank"`
	score
	Classes []classScore `json:"classes"`
}

type classScore struct {
	Label     string  `json:"label"`
	Texts     int     `json:"texts"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

func newEvaluateCmd(a *command.App) *cobra.Command {
	var dir, rank string
	var columns dataset.Columns
	choice := plugins.Flags()
	cmd := &cobra.Command{
		Use:   "evaluate --checkpoint DIR [--rank B|best|all] FILE",
		Short: "Score a released adapter on a labelled file",
		Long: `Label each text of FILE with the adapter of a checkpoint folder and hold it against
the file's own labels: accuracy, macro-F1, and precision, recall and F1 of each
class. FILE is ` + command.LabelledFormats + `.
Its labels must be the checkpoint's. Of a checkpoint that answers questions: exact
match, token F1 and ANLS on a file of documents with questions and answers. Of one that
tells masked words: how many, and their perplexity. Scoring every rank to choose one needs a file
that is not the one to report on.`,
		Example: "  starling evaluate --checkpoint run1/checkpoint test.tsv\n  starling evaluate --checkpoint run1/checkpoint --rank all --json validation.csv",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.Usagef("want one labelled file, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ck, err := command.ReadReleased(dir)
			if err != nil {
				return err
			}
			ranks, err := evaluateRanks(ck, rank)
			if err != nil {
				return err
			}
			if ck.Method.Task.Reads() == model.ReadsMasked {
				columns.Unlabelled = true // labels tell nothing of masked words
			}
			set, err := command.LoadLabelled(args[0], columns)
			if err != nil {
				return err
			}
			if set, err = set.Relabel(ck.Labels); err != nil {
				return err // it names file and line
			}
			e, err := choice.Open()
			if err != nil {
				return err
			}
			if ck.Method.Task.Asks() {
				return evaluateAnswers(cmd.Context(), a, e, ck, set, ranks)
			}
			r := EvaluateReport{File: args[0], Engine: e.Name, Texts: len(set.Examples), Best: ck.BestRank, what: called(set.Examples)}
			if err := r.measure(cmd.Context(), e, ck, set, ranks, a.Stderr); err != nil {
				return err
			}
			return a.Emit(r, r.print)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "checkpoint", "", "folder of a released adapter")
	f.StringVar(&rank, "rank", "best", "rank to score, best: the one that validation chose, or all")
	command.ColumnFlags(f, &columns)
	choice.Add(f)
	return cmd
}

func evaluateRanks(ck *model.Checkpoint, text string) ([]int, error) {
	if text != "all" {
		b, err := command.ChooseRank(ck, text)
		return []int{b}, err
	}
	if !ck.Method.Ranked() {
		return []int{0}, nil
	}
	var ranks []int
	for b := 1; b <= ck.Method.RMax; b++ {
		ranks = append(ranks, b)
	}
	return ranks, nil
}

// measure labels the texts in parts, and says how far it is where that takes long.
func (r *EvaluateReport) measure(ctx context.Context, with engine.Engine, ck *model.Checkpoint, set *dataset.Set, ranks []int, told io.Writer) error {
	all, err := evaluate.NewLabelled(with.Backend, ck.Base, ck.Adapter.Layout(), ck.Seq, set)
	if err != nil {
		return err
	}
	e := all[0]
	count := terminal.NewCountdown(told, r.what, len(ranks)*len(e.Examples))
	for n, rank := range ranks {
		var predicted [][]int
		loss := 0.0
		slice := ck.Adapter.Slice(rank)
		for at := 0; at < len(e.Examples); at += PredictChunk {
			part, sum, err := e.Predict(ctx, slice, rank, at, min(at+PredictChunk, len(e.Examples)))
			if err != nil {
				return err
			}
			predicted, loss = append(predicted, part...), loss+sum
			count.Reach(n*len(e.Examples) + min(at+PredictChunk, len(e.Examples)))
		}
		r.Ranks = append(r.Ranks, rankScore{rank, e.Scored(predicted, loss), classScores(predicted, e.Right, ck.Labels)})
	}
	return nil
}

// classScores is precision, recall and F1 of every class; 0 where nothing was said
// or there is nothing to find.
func classScores(said, right [][]int, names []string) []classScore {
	out := make([]classScore, len(names))
	if len(names) == 0 {
		return out
	}
	for i, c := range task.Count(said, right, len(names)) {
		out[i] = classScore{names[i], c.Were, c.Precision(), c.Recall(), c.F1()}
	}
	return out
}

func (r EvaluateReport) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s of %s\n\n  rank  accuracy  macro-F1\n", r.Texts, r.what, r.File)
	for _, s := range r.Ranks {
		mark := ""
		if s.Rank == r.Best && len(r.Ranks) > 1 {
			mark = "  chosen by validation"
		}
		fmt.Fprintf(&b, "  %4d  %6.1f %%  %6.1f %%%s\n", s.Rank, 100*s.Accuracy, 100*s.MacroF1, mark)
		for _, note := range s.Notes {
			fmt.Fprintf(&b, "        %s\n", note)
		}
	}
	if len(r.Ranks) == 1 && len(r.Ranks[0].Classes) > 0 {
		fmt.Fprintf(&b, "\n  %-24s %6s  precision  recall      F1\n", "class", r.what)
		for _, c := range r.Ranks[0].Classes {
			fmt.Fprintf(&b, "  %-24s %6d   %6.1f %% %5.1f %% %5.1f %%\n", c.Label, c.Texts, 100*c.Precision, 100*c.Recall, 100*c.F1)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

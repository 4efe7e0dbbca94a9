package operator

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/model"
)

func newEvaluateCmd(a *command.App) *cobra.Command {
	var dir, rank string
	var beams int
	var columns dataset.Columns
	choice := plugins.Flags()
	cmd := &cobra.Command{
		Use:   "evaluate --checkpoint DIR [--rank B|best|all] FILE",
		Short: "Score a released adapter on a labelled file",
		Long: `Label each text of FILE with the adapter of a checkpoint folder and hold it against
the file's own labels: accuracy, macro-F1, and precision, recall and F1 of each
class. FILE is ` + dataset.Formats + `.
Its labels must be the checkpoint's. Of a checkpoint that answers questions: exact
match, token F1 and ANLS on a file of documents with questions and answers. Of one that
tells masked words: how many, and their perplexity. Of one that transcribes recordings:
word and character error rates on JSON Lines of "audio" and "text". Scoring every rank to choose one needs a file
that is not the one to report on.`,
		Example: "  starling evaluate --checkpoint run1/checkpoint test.tsv\n  starling evaluate --checkpoint run1/checkpoint --rank all --json validation.csv",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("want one labelled file, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ck, err := bases.Released(dir)
			if err != nil {
				return err
			}
			ranks, err := evaluateRanks(ck, rank)
			if err != nil {
				return err
			}
			if ck.Method.Task.PredictsTokens() {
				columns.Unlabelled = true // labels tell nothing of words
			}
			set, err := columns.Load(args[0])
			if err != nil {
				return err
			}
			if set, err = set.Relabel(ck.Labels); err != nil {
				return err // it names file and line
			}
			if ck.Method.Task.Reads() != model.ReadsFrames && beams != 1 {
				return usage.Errorf("--beams is for a checkpoint that transcribes recordings")
			}
			e, err := choice.Open()
			if err != nil {
				return err
			}
			if ck.Method.Task.Asks() {
				return evaluation.Answers(cmd.Context(), &a.Streams, e, ck, set, ranks)
			}
			r := evaluation.Report{File: args[0], Engine: e.Name, Texts: len(set.Examples), Best: ck.BestRank, What: evaluation.Called(set.Examples), Beams: beams}
			if err := r.Measure(cmd.Context(), e, ck, set, ranks, a.Stderr); err != nil {
				return err
			}
			return a.Emit(r, r.Print)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "checkpoint", "", "folder of a released adapter")
	f.StringVar(&rank, "rank", "best", "rank to score, best: the one that validation chose, or all")
	f.IntVar(&beams, "beams", 1, "search for the likeliest text of a recording with so many beginnings at hand; 1: each frame's best character")
	command.ColumnFlags(f, &columns)
	choice.Add(f)
	return cmd
}

func evaluateRanks(ck *model.Checkpoint, text string) ([]int, error) {
	if text != "all" {
		b, err := bases.Rank(ck, text)
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

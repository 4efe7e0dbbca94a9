package device

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/predict"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/model"
)

func newPredictCmd(a *command.App, choice engine.Flags) *cobra.Command {
	var (
		dir, at string
		top     int
		beams   int

		columns dataset.Columns
	)
	cmd := &cobra.Command{
		Use:   "predict --checkpoint DIR [--rank B] [FILE]",
		Short: "Label texts with a released adapter",
		Long: `Label each text of FILE, or of standard input, with the adapter of a checkpoint
folder at a rank; without --rank at the one that validation chose. FILE is one
text a line, JSON Lines (.jsonl), CSV with a header (.csv) or label<TAB>text
(.tsv), plain or .gz; standard input is one text a line. An empty line of plain
text gets a label like any other, so that lines and labels stay in step. --json
names the line of each. An adapter over a base of images labels one image (.png,
.jpg, .pgm), a folder of them in the order of their names, or the rows of a table
of pixels (.csv); one over a base of recordings labels or transcribes a recording
(.wav, .flac) or a folder of them. One that labels words gives a label for each word of a text, split
at spaces. One that answers questions reads documents with questions from JSON Lines,
from standard input too: "words" with "boxes", or "lines", or a "text", and "question" or
"questions"; see docs/MODELS.md. It writes an answer a line, with --json beside its
question and how sure it is. One that tells masked words fills in every [MASK] (of a
RoBERTa <mask>) that a text spells; with --top it gives the likeliest tokens instead, a
line for each mask.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage.Errorf("want at most one file, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ck, err := bases.Released(dir)
			if err != nil {
				return err
			}
			rank, err := bases.Rank(ck, at)
			if err != nil {
				return err
			}
			in, name := a.Stdin, ""
			if len(args) == 1 {
				f, err := named.OpenAny(args[0]) // a folder of images or recordings, too
				if err != nil {
					return err
				}
				defer f.Close()
				in, name = f, args[0]
			}
			if ck.Method.Task.Asks() {
				if top != 0 {
					return usage.Errorf("--top is for labels, and the checkpoint answers questions")
				}
				e, err := choice.Open()
				if err != nil {
					return err
				}
				return predict.Answers(cmd.Context(), &a.Streams, e, ck, rank, in, name)
			}
			if ck.Method.Task.Reads() == model.ReadsNext {
				return usage.Errorf("the checkpoint writes texts on, and has no labels for them: starling generate writes")
			}
			transcribes := ck.Method.Task.Reads() == model.ReadsFrames
			if transcribes && top != 0 || !transcribes && beams != 1 {
				return usage.Errorf("--top is for labels and tokens, --beams for a checkpoint that transcribes recordings")
			}
			choices, what := len(ck.Labels), "labels"
			if ck.Method.Task.Reads() == model.ReadsMasked {
				choices, what = ck.Base.Config.VocabSize, "tokens"
			}
			if top < 0 || top > choices {
				return usage.Errorf("--top is %d, the checkpoint has %d %s", top, choices, what)
			}
			e, err := choice.Open()
			if err != nil {
				return err
			}
			if ck.Method.Task.Reads() == model.ReadsMasked {
				return predict.Blanks(cmd.Context(), &a.Streams, e, ck, rank, top, columns, in, name)
			}
			return predict.Texts(cmd.Context(), &a.Streams, e, ck, rank, top, beams, columns, in, name)
		},
	}
	cmd.Flags().StringVar(&dir, "checkpoint", "", "folder of a released adapter")
	cmd.Flags().IntVar(&top, "top", 0, "give the likeliest labels, or tokens for a mask, so many, each with its probability")
	cmd.Flags().IntVar(&beams, "beams", 1, "search for the likeliest text of a recording with so many beginnings at hand; 1: each frame's best character")
	cmd.Flags().StringVar(&at, "rank", "best", "rank to use, or best: the one that validation chose")
	command.TextColumnFlag(cmd.Flags(), &columns)
	choice.Add(cmd.Flags())
	return cmd
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/tokenizer"
	"github.com/starling-fl/starling/wasm/compiler"
)

// predictChunk is how many texts are read before they are labelled.
const predictChunk = 256

type prediction struct {
	Line        int     `json:"line"` // of the file, from 1
	Label       string  `json:"label"`
	Probability float64 `json:"probability"` // softmax, not calibrated
}

func newPredictCmd(a *app) *cobra.Command {
	var (
		dir  string
		rank int

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
names the line of each.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("want at most one file, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return usagef("--checkpoint is missing: the folder of a released adapter")
			}
			ck, err := model.ReadCheckpoint(dir)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("rank") {
				if rank = ck.BestRank; rank == 0 {
					rank = ck.LoRA.RMax
				}
			}
			if rank < 0 || rank > ck.LoRA.RMax {
				return usagef("--rank is %d, the adapter has ranks 0 (head only) to %d", rank, ck.LoRA.RMax)
			}
			in, name := a.Stdin, ""
			if len(args) == 1 {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in, name = f, args[0]
			}
			return predictTexts(cmd, a, ck, rank, columns, in, name)
		},
	}
	cmd.Flags().StringVar(&dir, "checkpoint", "", "folder of a released adapter")
	cmd.Flags().IntVar(&rank, "rank", 0, "rank to use (default: the one that validation chose)")
	textColumnFlag(cmd.Flags(), &columns)
	return cmd
}

// predictTexts labels the texts of a file, in which format its name says.
func predictTexts(cmd *cobra.Command, a *app, ck *model.Checkpoint, rank int, columns dataset.Columns, in io.Reader, name string) error {
	tok, err := tokenizer.ParseFor(ck.Base.Tokenizer, ck.Base.Config.VocabSize, ck.Base.Config.PadTokenID)
	if err != nil {
		return fmt.Errorf("the checkpoint's tokenizer: %w", err)
	}
	p, err := nn.NewPredictor(ck.Adapter.Layout(), ck.Base, ck.Seq, compiler.New())
	if err != nil {
		return err
	}
	slice := ck.Adapter.Slice(rank)
	out := bufio.NewWriter(a.Stdout)
	enc := json.NewEncoder(out)
	var lines []int // of the rows
	flush := func(rows [][]int32) error {
		logits, err := p.Logits(cmd.Context(), slice, rank, rows)
		if err != nil {
			return err
		}
		for i, l := range logits {
			class, prob := softmaxBest(l)
			r := prediction{lines[i], ck.Labels[class], prob}
			if a.JSON {
				err = enc.Encode(r)
			} else {
				_, err = fmt.Fprintf(out, "%s\n", r.Label)
			}
			if err != nil {
				return err
			}
		}
		return out.Flush()
	}
	var rows [][]int32
	err = columns.Texts(in, name, func(at int, text string) error {
		rows, lines = append(rows, tok.EncodeFixed(text, ck.Seq)), append(lines, at)
		if len(rows) < predictChunk {
			return nil
		}
		defer func() { rows, lines = rows[:0], lines[:0] }()
		return flush(rows)
	})
	if err != nil {
		return columnHint(err)
	}
	return flush(rows)
}

// softmaxBest returns the first largest class and its share.
func softmaxBest(logits []float32) (class int, probability float64) {
	for c, x := range logits {
		if x > logits[class] {
			class = c
		}
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x - logits[class]))
	}
	return class, 1 / sum
}

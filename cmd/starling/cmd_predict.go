package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/tokenizer"
	"github.com/starling-fl/starling/wasm/compiler"
)

// predictChunk is how many lines are read before they are labelled.
const predictChunk = 256

type prediction struct {
	Line        int     `json:"line"` // from 1
	Label       string  `json:"label"`
	Probability float64 `json:"probability"` // softmax, not calibrated
}

func newPredictCmd(a *app) *cobra.Command {
	var (
		dir  string
		rank int
	)
	cmd := &cobra.Command{
		Use:   "predict --checkpoint DIR [--rank B] [FILE]",
		Short: "Label lines of text with a released adapter",
		Long: `Label each line of FILE, or of standard input, with the adapter of a checkpoint
folder at a rank; without --rank at the one that validation chose. An empty
line gets a label like any other, so that lines and labels stay in step.`,
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
			in := a.Stdin
			if len(args) == 1 {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			return predictLines(cmd, a, ck, rank, in)
		},
	}
	cmd.Flags().StringVar(&dir, "checkpoint", "", "folder of a released adapter")
	cmd.Flags().IntVar(&rank, "rank", 0, "rank to use (default: the one that validation chose)")
	return cmd
}

func predictLines(cmd *cobra.Command, a *app, ck *model.Checkpoint, rank int, in io.Reader) error {
	tok, err := tokenizer.Parse(ck.Base.Tokenizer)
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
	line := 0
	flush := func(rows [][]int32) error {
		logits, err := p.Logits(cmd.Context(), slice, rank, rows)
		if err != nil {
			return err
		}
		for _, l := range logits {
			line++
			class, prob := softmaxBest(l)
			r := prediction{line, ck.Labels[class], prob}
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
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxLine)
	var rows [][]int32
	for sc.Scan() {
		rows = append(rows, tok.EncodeFixed(sc.Text(), ck.Seq))
		if len(rows) == predictChunk {
			if err := flush(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("line %d: %w", line+len(rows)+1, err)
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

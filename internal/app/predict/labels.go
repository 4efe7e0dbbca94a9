package predict

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// Chunk is the number of texts that are read before they are labelled.
const Chunk = 256

type Prediction struct {
	Line        int     `json:"line"` // of the file, from 1
	Label       string  `json:"label"`
	Probability float64 `json:"probability"` // softmax, not calibrated

	Top []ranked `json:"top,omitempty"` // with --top: the likeliest, that one first
}

// severally is a prediction where any number of labels may be right.
type severally struct {
	Line   int      `json:"line"`
	Labels []string `json:"labels"` // whose probability is a half or more

	Top []ranked `json:"top,omitempty"`
}

// ranked is a label and its probability.
type ranked struct {
	Label       string  `json:"label"`
	Probability float64 `json:"probability"`
}

// Texts labels the texts of a file, in which format its name says.
func Texts(ctx context.Context, to *terminal.Streams, e engine.Engine, ck *model.Checkpoint, rank, top, beams int, columns dataset.Columns, in io.Reader, name string) error {
	t, err := task.New(ck.Base, ck.Adapter.Layout(), ck.Seq)
	if err != nil {
		return fmt.Errorf("the checkpoint: %w", err)
	}
	k, ok := t.(task.Labeller)
	if !ok {
		return fmt.Errorf("the checkpoint: task %s has no labels", ck.Method.Task)
	}
	writes, _ := k.(task.Transcriber)
	if writes != nil && beams > 1 {
		if writes, err = writes.Beams(beams); err != nil {
			return usage.Wrap(err)
		}
	}
	p, err := nn.NewPredictor(ck.Adapter.Layout(), ck.Base, ck.Seq, e.Backend)
	if err != nil {
		return err
	}
	slice := ck.Adapter.Slice(rank)
	predict := predictions{to, Chunk, "examples", func(examples []dataset.Example) ([]said, error) {
		rows, err := task.EncodeAll(k, examples)
		if err != nil {
			return nil, err
		}
		logits, err := p.Outputs(ctx, slice, rank, rows, len(examples))
		if err != nil {
			return nil, err
		}
		out := make([]said, len(logits))
		for i, l := range logits {
			switch {
			case writes != nil:
				out[i] = saidOfRecording(examples[i], writes, l)
			case ck.Method.Task.OfTokens():
				out[i] = saidOfWords(examples[i], k, rows, i, l, ck.Labels)
			default:
				out[i] = saidOfLabels(examples[i], k.Choice(), l, ck.Labels, top)
			}
		}
		return out, nil
	}}
	return predict.of(func(take func(dataset.Example) error) error {
		if ck.Base.Config.Hears() {
			return eachRecording(name, func(at int, r *dataset.Recording) error { return take(k.Open(dataset.Example{Line: at, Recording: r})) })
		}
		if ck.Base.Config.Sees() {
			return eachImage(columns, in, name, func(at int, m *dataset.Image) error { return take(dataset.Example{Line: at, Image: m}) })
		}
		return columns.Texts(in, name, func(at int, text string) error {
			if ck.Method.Task.OfTokens() && strings.TrimSpace(text) == "" {
				text = "." // a line keeps its place
			}
			return take(k.Open(dataset.Example{Line: at, Text: text}))
		})
	})
}

// saidOfWords is a text's words, each with the label that its scores speak for.
func saidOfWords(e dataset.Example, k task.Labeller, rows task.Batch, row int, scores []float32, labels []string) said {
	var tags []string
	for _, at := range k.Places(rows, row) {
		tags = append(tags, strings.Join(namesOf(k.Choice().Predicted(scores[at*len(labels):(at+1)*len(labels)]), labels), ", "))
	}
	return said{tagged{e.Line, e.Words[:len(tags)], tags}, terminal.Visible(strings.Join(tags, " "), "") + "\n"}
}

// namesOf are the names of labels.
func namesOf(classes []int, labels []string) []string {
	out := make([]string, len(classes))
	for i, c := range classes {
		out[i] = labels[c]
	}
	return out
}

// saidOfLabels is the likeliest label, or all that the scores speak for where several may
// be right, and with --top so many of the likeliest.
func saidOfLabels(e dataset.Example, choice task.Choice, scores []float32, labels []string, top int) said {
	best := likeliest(choice, scores, labels)
	if choice.Several() {
		r := severally{Line: e.Line, Labels: namesOf(choice.Predicted(scores), labels), Top: best[:top]}
		return said{r, linesOf(strings.Join(r.Labels, ", "), r.Top)}
	}
	r := Prediction{Line: e.Line, Label: best[0].Label, Probability: best[0].Probability, Top: best[:top]}
	return said{r, linesOf(r.Label, r.Top)}
}

// linesOf is what is said, or with --top the likeliest labels.
func linesOf(label string, top []ranked) string {
	if len(top) == 0 {
		return terminal.Visible(label, "") + "\n"
	}
	var cells []string
	for _, b := range top {
		cells = append(cells, fmt.Sprintf("%s\t%.4f", terminal.Visible(b.Label, ""), b.Probability))
	}
	return strings.Join(cells, "\t") + "\n"
}

// tagged is a text's words and the label of each.
type tagged struct {
	Line  int      `json:"line"`
	Words []string `json:"words"` // split at spaces; those beyond the sequence are left out
	Tags  []string `json:"tags"`
}

// likeliest sorts the labels by probability; equal ones stay in their order.
func likeliest(choice task.Choice, scores []float32, labels []string) []ranked {
	out := make([]ranked, len(scores))
	for c, p := range choice.Probabilities(scores) {
		out[c] = ranked{labels[c], p}
	}
	slices.SortStableFunc(out, func(a, b ranked) int { return cmp.Compare(b.Probability, a.Probability) })
	return out
}

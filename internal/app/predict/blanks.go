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
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// Filled is a text with the likeliest token in place of each mask that it spelled.
type Filled struct {
	Line  int      `json:"line"` // of the file, from 1
	Text  string   `json:"text"`
	Masks []masked `json:"masks"` // in the order of the text
}

// masked is what a masked token may have been.
type masked struct {
	Likely
	Top []Likely `json:"top,omitempty"` // with --top: the likeliest, that one first
}

// Likely is a candidate token for a mask.
type Likely struct {
	Token       string  `json:"token"` // " word" where it begins one of a byte-level BPE, "##ing" where it continues one
	ID          int32   `json:"id"`
	Probability float64 `json:"probability"` // softmax over the vocabulary, not calibrated
}

// blanks tells the tokens that texts leave open.
type blanks struct {
	task      task.Filler
	tok       tokenizer.Tokenizer
	predictor *nn.Predictor
	slice     []float32
	rank, top int
	perPass   int // rows whose scores are held at once
	words     int
}

func newBlanks(e engine.Engine, ck *model.Checkpoint, rank, top int) (*blanks, error) {
	k, err := task.New(ck.Base, ck.Adapter.Layout(), ck.Seq)
	if err != nil {
		return nil, fmt.Errorf("the checkpoint: %w", err)
	}
	c := ck.Base.Config
	tok, err := tokenizer.ParseFor(ck.Base.Tokenizer, c.VocabSize, c.PadTokenID)
	if err != nil {
		return nil, err
	}
	p, err := nn.NewPredictor(ck.Adapter.Layout(), ck.Base, ck.Seq, e.Backend)
	if err != nil {
		return nil, err
	}
	return &blanks{k.(task.Filler), tok, p, ck.Adapter.Slice(rank), rank, top, nn.RowsOfScores(k, c.VocabSize), c.VocabSize}, nil
}

// Blanks fills in the masks of a file's texts.
func Blanks(ctx context.Context, to *terminal.Streams, e engine.Engine, ck *model.Checkpoint, rank, top int, columns dataset.Columns, in io.Reader,
	name string) error {
	f, err := newBlanks(e, ck, rank, top)
	if err != nil {
		return err
	}
	p := predictions{to, Chunk, "texts", func(examples []dataset.Example) ([]said, error) {
		texts, err := f.fill(ctx, examples)
		if err != nil {
			return nil, err
		}
		out := make([]said, len(texts))
		for i, t := range texts {
			out[i] = said{t, t.lines(top > 0)}
		}
		return out, nil
	}}
	return p.of(func(take func(dataset.Example) error) error {
		return columns.Texts(in, name, func(line int, text string) error {
			if mask := f.task.Mask().Spelling; strings.TrimSpace(text) != "" && !strings.Contains(text, mask) {
				return fmt.Errorf("the text has no %s, the token to predict", mask)
			}
			return take(dataset.Example{Line: line, Text: text})
		})
	})
}

// fill tells the masks of texts.
func (f *blanks) fill(ctx context.Context, examples []dataset.Example) ([]Filled, error) {
	rows, n, of := f.task.Blanks(examples)
	byRow := make([][]masked, n)
	places := make([]int, n)
	for _, all := range of {
		for _, b := range all {
			places[b.Row] = max(places[b.Row], b.Place+1)
		}
	}
	for at := 0; at < n; at += f.perPass {
		end := min(at+f.perPass, n)
		scores, err := f.predictor.Outputs(ctx, f.slice, f.rank, rows.Cut(at, end), end-at)
		if err != nil {
			return nil, err
		}
		for i, s := range scores {
			for k := range places[at+i] {
				byRow[at+i] = append(byRow[at+i], f.likeliest(s[k*f.words:(k+1)*f.words]))
			}
		}
	}
	out := make([]Filled, len(examples))
	mask := f.task.Mask()
	for i, e := range examples {
		out[i] = Filled{Line: e.Line, Masks: []masked{}}
		var tokens []string
		for _, b := range of[i] {
			m := byRow[b.Row][b.Place]
			out[i].Masks, tokens = append(out[i].Masks, m), append(tokens, m.Token)
		}
		out[i].Text = mask.Fill(mask.Cut(e.Text), tokens)
	}
	return out, nil
}

// likeliest is the best of a mask's scores, and with --top the best of them; equal ones
// stay in the order of their ids.
func (f *blanks) likeliest(scores []float32) masked {
	ids := []int{task.Best(scores)}
	if f.top > 0 {
		ids = make([]int, len(scores))
		for i := range ids {
			ids[i] = i
		}
		slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
		ids = ids[:f.top]
	}
	var top []Likely
	for _, id := range ids {
		top = append(top, Likely{tokenizer.Text(f.tok, int32(id)), int32(id), task.Probability(scores, id)})
	}
	if f.top == 0 {
		return masked{Likely: top[0]}
	}
	return masked{top[0], top}
}

// lines is the text on a line, or the likeliest tokens of each mask on one.
func (t Filled) lines(top bool) string {
	if !top || len(t.Masks) == 0 {
		return terminal.Visible(t.Text, "") + "\n"
	}
	var b strings.Builder
	for _, m := range t.Masks {
		var cells []string
		for _, c := range m.Top {
			cells = append(cells, fmt.Sprintf("%s\t%.4f", terminal.Visible(strings.TrimSpace(c.Token), ""), c.Probability))
		}
		b.WriteString(strings.Join(cells, "\t") + "\n")
	}
	return b.String()
}

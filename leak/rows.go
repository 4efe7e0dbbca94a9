package leak

import (
	"context"
	"math"
	"slices"

	"github.com/starling-fl/starling/model"
)

// tokenRows reads tensors that have a row for each token: of an embedding table, or of the
// scores that a masked token may have been, which an update moves where the token stands
// in its texts.
func (p *probe) tokenRows() attack {
	a := attack{name: "token rows", of: Tokens}
	var tables []model.Span
	for _, s := range p.Layout.Spans(p.Rank) {
		if n := p.Base.Config.VocabSize; n > 0 && s.Len > 0 && s.Shape[0] == n && (s.Kind == model.KindDelta || s.Kind == model.KindHead) {
			tables = append(tables, s)
		}
	}
	if len(tables) == 0 {
		a.why = "no tensor with a row for each token is trained"
		return a
	}
	a.tokens = func(_ context.Context, u *update) ([]float64, error) {
		score := make([]float64, tables[0].Shape[0])
		for _, s := range tables {
			rows := u.values[s.Offset : s.Offset+s.Len]
			for v, x := range standard(apart(rows, s.Len/len(score))) {
				score[v] += x
			}
		}
		return p.positive(score), nil
	}
	return a
}

// mostMedian is of how many rows a table's median is taken.
const mostMedian = 1001

// apart is how far each row of so many values has moved from how most rows have: where the
// table is that of the answers' scores, too, each row moves a little in one step, and with
// AdamW each by as much.
func apart(rows []float32, width int) []float64 {
	n := len(rows) / width
	step := max(1, n/mostMedian)
	middle := make([]float32, width)
	column := make([]float32, 0, n/step+1)
	for i := range width {
		column = column[:0]
		for v := 0; v < n; v += step {
			column = append(column, rows[v*width+i])
		}
		slices.Sort(column)
		middle[i] = column[len(column)/2]
	}
	far := make([]float64, n)
	for v := range far {
		for i, m := range middle {
			d := float64(rows[v*width+i] - m)
			far[v] += d * d
		}
		far[v] = math.Sqrt(far[v])
	}
	return far
}

// standard is values over their root mean square: several tables then count alike.
func standard(values []float64) []float64 {
	square := 0.0
	for _, x := range values {
		square += x * x
	}
	if square > 0 {
		scale := math.Sqrt(float64(len(values)) / square)
		for i := range values {
			values[i] *= scale
		}
	}
	return values
}

// positive leaves out the tokens that every text has.
func (p *probe) positive(score []float64) []float64 {
	for id := range p.frame {
		score[id] = 0
	}
	return score
}

package leak

import (
	"context"
	"math"
	"slices"

	"github.com/starling-fl/starling/model"
)

// tokenRows reads tensors that have a row for each token: of an embedding table, or of the
// scores that a masked token may have been, or a character that is said, which an update moves where the token stands
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

// apart is how far each row of so many values has moved; from how most have where most
// have: a table that is that of the answers' scores, too, moves a little in each row, and
// with AdamW as much in each.
func apart(rows []float32, width int) []float64 {
	n := len(rows) / width
	far := lengths(rows, make([]float32, width))
	step := max(1, n/mostMedian)
	middle := make([]float32, width)
	for i := range middle {
		var column []float32
		for v := 0; v < n; v += step {
			column = append(column, rows[v*width+i])
		}
		slices.Sort(column)
		middle[i] = column[len(column)/2]
	}
	usual := slices.Sorted(slices.Values(far))[n/2]
	if moved := lengths(middle, make([]float32, width))[0]; moved > usual/2 {
		return lengths(rows, middle)
	}
	return far
}

// lengths are the norms of rows less one of them.
func lengths(rows, less []float32) []float64 {
	width := len(less)
	far := make([]float64, len(rows)/width)
	for v := range far {
		for i, m := range less {
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

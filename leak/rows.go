package leak

import (
	"context"
	"math"

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
			norms := make([]float64, len(score))
			width := s.Len / len(score)
			for v := range norms {
				for _, x := range u.values[s.Offset+v*width : s.Offset+(v+1)*width] {
					norms[v] += float64(x) * float64(x)
				}
				norms[v] = math.Sqrt(norms[v])
			}
			for v, x := range standard(norms) {
				score[v] += x
			}
		}
		return p.positive(score), nil
	}
	return a
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

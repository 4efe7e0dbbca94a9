package leak

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/starling-fl/starling/model"
)

// Limits of what layerInputs computes with.
const (
	mostRows  = 128     // of the gradient; of more a random mixture of so many is taken
	mostTable = 1 << 26 // values of the embedding table
	mostNear  = 4       // tokens looked at place by place, over those that the texts have
)

// layerInputs looks for tokens in the first layer's gradient: of a linear map W, and of
// the factor A of a low-rank one, it is a sum of outer products whose right sides are the
// layer's inputs, and these are embeddings that the attacker has all of. What of a token's
// embedding is in the span of the gradient's rows, weighed by how far the rows stand out
// of rounding and noise, says whether it was there.
func (p *probe) layerInputs() attack {
	a := attack{name: "layer inputs", of: Tokens}
	e := embeddings{p: p}
	var maps []model.Span
	first := e.firstMaps()
	for _, s := range p.Layout.Spans(p.Rank) {
		if s.Len > 0 && len(s.Shape) == 2 && (s.Kind == model.KindA || s.Kind == model.KindDelta) && slices.Contains(first, s.Changes()) {
			maps = append(maps, s)
		}
	}
	switch {
	case len(first) == 0:
		a.why = "for this base it is not known what its first layer reads"
	case len(maps) == 0:
		a.why = "no linear map that reads embeddings is trained"
	case p.Base.Config.VocabSize*p.Base.Config.HiddenSize > mostTable:
		a.why = "the embedding table is too large to look through in the time"
	}
	if a.why != "" {
		return a
	}
	a.prepared = func(context.Context) (string, error) { return "", e.load() }
	a.tokens = func(_ context.Context, u *update) ([]float64, error) {
		h := p.Base.Config.HiddenSize
		var rows []float64
		for _, s := range maps {
			for _, x := range u.values[s.Offset : s.Offset+s.Len] {
				rows = append(rows, float64(x))
			}
		}
		g := mixed(mat.NewDense(len(rows)/h, h, rows), rand.New(p.source("mixture", 0)))
		near, ok := span(e.withoutMean(g), u.level)
		if !ok {
			return make([]float64, p.Base.Config.VocabSize), nil
		}
		score := make([]float64, p.Base.Config.VocabSize)
		x := make([]float64, h)
		for v := range score {
			e.at(x, v, -1)
			score[v] = near(x)
		}
		score = p.positive(score)
		// Of the nearest each place by itself, which decides between tokens that are alike.
		for v := range best(score, mostNear*len(u.in.tokens)) {
			for place := range min(p.Sequence, e.places()) {
				e.at(x, int(v), place)
				score[v] = max(score[v], near(x))
			}
			score[v]++ // above all that were not looked at
		}
		return score, nil
	}
	return a
}

// mixed is a matrix of at most mostRows rows with the same span, as far as so many have it.
func mixed(g *mat.Dense, rng *rand.Rand) *mat.Dense {
	n, _ := g.Dims()
	if n <= mostRows {
		return g
	}
	signs := mat.NewDense(mostRows, n, nil)
	for i := range mostRows {
		for k := range n {
			signs.Set(i, k, (float64(rng.IntN(2))*2-1)/math.Sqrt(mostRows))
		}
	}
	var out mat.Dense
	out.Mul(signs, g)
	return &out
}

// span measures how much of a vector is in the span of g's rows, 0..1, where noise of a
// variance a value is on them: x' G' (G G' + lambda I)^-1 G x / x'x.
func span(g *mat.Dense, variance float64) (near func(x []float64) float64, ok bool) {
	n, h := g.Dims()
	gram := mat.NewSymDense(n, nil)
	gram.SymOuterK(1, g)
	lambda := variance*float64(h) + 1e-9*mat.Trace(gram)/float64(n)
	if lambda == 0 {
		return nil, false
	}
	for i := range n {
		gram.SetSym(i, i, gram.At(i, i)+lambda)
	}
	var factor mat.Cholesky
	if !factor.Factorize(gram) {
		return nil, false
	}
	// With G G' + lambda I = L L' it is the square of L^-1 G x.
	var lower mat.TriDense
	factor.LTo(&lower)
	var whitened mat.Dense
	if err := whitened.Solve(&lower, g); err != nil {
		return nil, false
	}
	out := mat.NewVecDense(n, nil)
	return func(x []float64) float64 {
		v := mat.NewVecDense(h, x)
		square := mat.Dot(v, v)
		if square == 0 {
			return 0
		}
		out.MulVec(&whitened, v)
		return mat.Dot(out, out) / square
	}, true
}

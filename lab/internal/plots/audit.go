package plots

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/starling-fl/starling/dp/audit"
	"github.com/starling-fl/starling/internal/leaf/palette"
)

// Audit draws the canaries of the pass that showed most, from the lowest score to the
// highest, those that were in and those that were out.
func (Plots) Audit(w io.Writer, format string, r audit.Result) error {
	p, err := auditPlot(r)
	if err != nil {
		return err
	}
	return write(w, format, p)
}

// mostTelling is the pass that showed most.
func mostTelling(r audit.Result) audit.PassResult {
	return slices.MaxFunc(r.Passes, func(a, b audit.PassResult) int {
		best := func(p audit.PassResult) float64 {
			most := -1.0
			for _, g := range p.Guesses {
				most = max(most, g.Epsilon)
			}
			return most
		}
		return cmp.Compare(best(a), best(b))
	})
}

func auditPlot(r audit.Result) (*plot.Plot, error) {
	pass := mostTelling(r)
	order := make([]int, len(pass.Scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(pass.Scores[a], pass.Scores[b]) })
	var in, out plotter.XYs
	for at, i := range order {
		xy := plotter.XY{X: float64(at + 1), Y: pass.Scores[i]}
		if pass.In[i] {
			in = append(in, xy)
		} else {
			out = append(out, xy)
		}
	}
	p := empty(fmt.Sprintf("Canaries: epsilon at least %.4g (%.4g %%), the ledger says %.4g", r.Epsilon, 100*r.Confidence, r.Ledger.Epsilon),
		"canaries, by score", "score (log likelihood of in to out)")
	for _, s := range []struct {
		name   string
		xy     plotter.XYs
		colour color.Color
		shape  draw.GlyphDrawer
	}{{"in", in, palette.Series[1].Light, draw.CircleGlyph{}}, {"out", out, palette.Series[0].Light, draw.CrossGlyph{}}} {
		if len(s.xy) == 0 {
			continue
		}
		points, err := plotter.NewScatter(s.xy)
		if err != nil {
			return nil, err
		}
		points.GlyphStyle = draw.GlyphStyle{Color: s.colour, Radius: vg.Points(1.8), Shape: s.shape}
		p.Add(points)
		p.Legend.Add(s.name, points)
	}
	return p, nil
}

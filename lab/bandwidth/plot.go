package bandwidth

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"github.com/dustin/go-humanize"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/starling-fl/starling/internal/leaf/palette"
	"github.com/starling-fl/starling/lab/canvas"
)

// smallestPlotted is the error below which a scheme counts as exact and is left
// out of the plot, whose axis is logarithmic.
const smallestPlotted = 1e-10

// plotPoint is one scheme in the plot: logarithms to base 10 of bits and error.
type plotPoint struct {
	label string
	x, y  float64
}

// points takes one row a scheme: its best codec at the highest rank measured.
func (r *Report) points(masked bool) []plotPoint {
	best := map[string]Row{}
	for _, x := range r.Rows {
		if x.Masked != masked || x.RelativeMSE < smallestPlotted {
			continue
		}
		b, seen := best[x.Scheme]
		if !seen || x.Params > b.Params || x.Params == b.Params && x.Bits < b.Bits {
			best[x.Scheme] = x
		}
	}
	var out []plotPoint
	for name, x := range best {
		out = append(out, plotPoint{name, math.Log10(x.Bits), math.Log10(x.RelativeMSE)})
	}
	slices.SortFunc(out, func(a, b plotPoint) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) })
	return out
}

// Plot draws error against bits, one point a scheme, in the given format ("svg"
// or "png"). Both axes are logarithms on a linear scale: with a logarithmic scale the
// library reserves room for a centred label as if it was at the end.
func (r *Report) Plot(w io.Writer, format string) error {
	params := 0
	for _, x := range r.Rows {
		params = max(params, x.Params)
	}
	p := canvas.Plot(fmt.Sprintf("Uplink of %s values: %d devices, shards of %d", humanize.Comma(int64(params)), r.Cohort, r.Shard),
		"bits per parameter, measured at the socket, all included", "relative squared error of the mean update")
	p.X.Tick.Marker, p.Y.Tick.Marker = canvas.Powers{}, canvas.Powers{}
	masked, open := r.points(true), r.points(false)
	all := append(slices.Clone(masked), open...)
	if len(all) == 0 {
		return errors.New("bandwidth: every scheme measured is exact: nothing to plot")
	}
	for i, series := range []struct {
		name   string
		points []plotPoint
		shape  draw.GlyphDrawer
	}{
		{"masked (secure aggregation, keys included)", masked, draw.CircleGlyph{}},
		{"in the clear, best codec (comparison only)", open, draw.BoxGlyph{}},
	} {
		if len(series.points) == 0 {
			continue
		}
		xys := make(plotter.XYs, len(series.points))
		for i, q := range series.points {
			xys[i] = plotter.XY{X: q.x, Y: q.y}
		}
		s, err := plotter.NewScatter(xys)
		if err != nil {
			return err
		}
		look, _ := palette.Look(i)
		s.GlyphStyle = draw.GlyphStyle{Color: look.Light, Radius: vg.Points(3.6), Shape: series.shape}
		p.Add(s)
		p.Legend.Add(series.name, s)
		if err := addLabels(p, series.points, all, look.Light); err != nil {
			return err
		}
	}
	// Room for labels, and for the legend above.
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = p.X.Min-0.05, p.X.Max+0.1, p.Y.Min-0.7, p.Y.Max+1.9
	return canvas.Write(w, format, p, 14*vg.Centimeter, 9.5*vg.Centimeter)
}

// addLabels names the points: to the right and above, or below where another
// point is near on that side.
func addLabels(p *plot.Plot, points, all []plotPoint, c color.Color) error {
	for _, q := range points {
		l, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: q.x, Y: q.y}}, Labels: []string{q.label}})
		if err != nil {
			return err
		}
		style := &l.TextStyle[0]
		style.Color = c
		style.Font.Size = vg.Points(9)
		style.XAlign, style.YAlign = text.XLeft, text.YBottom
		l.Offset = vg.Point{X: vg.Points(4), Y: vg.Points(1.5)}
		for _, o := range all {
			// Near in x, a little above in y: the label would run over it.
			if dx, dy := o.x-q.x, o.y-q.y; o != q && dx > -0.02 && dx < 0.07 && dy >= 0 && dy < 0.7 {
				style.YAlign = text.YTop
				l.Offset.Y = -vg.Points(1.5)
			}
		}
		p.Add(inside{l})
	}
	return nil
}

// inside draws labels without asking for room: the axes leave enough, and a
// label that asks for some makes the whole frame shrink.
type inside struct{ labels *plotter.Labels }

func (i inside) Plot(c draw.Canvas, p *plot.Plot) { i.labels.Plot(c, p) }

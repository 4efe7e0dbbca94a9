package main

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	maskedColor = color.RGBA{R: 0x1b, G: 0x5e, B: 0x9e, A: 0xff}
	clearColor  = color.RGBA{R: 0xc2, G: 0x5a, B: 0x12, A: 0xff}
	gridColor   = color.Gray{Y: 0xdd}
)

// smallestPlotted is the error below which a scheme counts as exact and is left
// out of the plot, whose axis is logarithmic.
const smallestPlotted = 1e-10

// plotPoint is one scheme in the plot.
type plotPoint struct {
	label string
	x, y  float64
}

// points takes one row a scheme: its best codec at the highest rank measured.
func (r *bandwidthReport) points(masked bool) []plotPoint {
	best := map[string]bandwidthRow{}
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
		out = append(out, plotPoint{name, x.Bits, x.RelativeMSE})
	}
	slices.SortFunc(out, func(a, b plotPoint) int {
		if a.x != b.x {
			return int(math.Copysign(1, a.x-b.x))
		}
		return int(math.Copysign(1, a.y-b.y))
	})
	return out
}

// plot draws error against bits, one point a scheme, in the given format ("svg"
// or "png").
func (r *bandwidthReport) plot(w io.Writer, format string) error {
	p := plot.New()
	params := 0
	for _, x := range r.Rows {
		params = max(params, x.Params)
	}
	p.Title.Text = fmt.Sprintf("Uplink of %d values: %d devices, shards of %d", params, r.Cohort, r.Shard)
	p.Title.TextStyle.Font.Size = vg.Points(11)
	p.Title.Padding = vg.Points(6)
	p.X.Label.Text = "bits per parameter, measured at the socket, all included"
	p.Y.Label.Text = "relative squared error of the mean update"
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Scale = plot.LogScale{}
		axis.Label.TextStyle.Font.Size = vg.Points(10)
		axis.Tick.Label.Font.Size = vg.Points(9)
		axis.Padding = vg.Points(4)
	}
	p.X.Tick.Marker = plot.ConstantTicks(bitTicks())
	p.Y.Tick.Marker = plot.ConstantTicks(decades())

	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColor, gridColor
	p.Add(grid)

	masked, open := r.points(true), r.points(false)
	all := append(slices.Clone(masked), open...)
	if len(all) == 0 {
		return fmt.Errorf("bandwidth: every scheme measured is exact: nothing to plot")
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = limits(all)
	for _, series := range []struct {
		name   string
		points []plotPoint
		style  draw.GlyphStyle
	}{
		{"masked (secure aggregation, keys included)", masked, draw.GlyphStyle{Color: maskedColor, Radius: vg.Points(3.6), Shape: draw.CircleGlyph{}}},
		{"in the clear, best codec (comparison only)", open, draw.GlyphStyle{Color: clearColor, Radius: vg.Points(3.6), Shape: draw.BoxGlyph{}}},
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
		s.GlyphStyle = series.style
		p.Add(s)
		p.Legend.Add(series.name, s)
		if err := addLabels(p, series.points, all, series.style.Color); err != nil {
			return err
		}
	}
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.Padding = vg.Points(2)
	p.Legend.XOffs, p.Legend.YOffs = -vg.Points(6), -vg.Points(6)
	out, err := p.WriterTo(15*vg.Centimeter, 10*vg.Centimeter, format)
	if err != nil {
		return err
	}
	_, err = out.WriteTo(w)
	return err
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
			if dx, dy := math.Log(o.x/q.x), math.Log(o.y/q.y); o != q && dx > -0.05 && dx < 0.25 && dy >= 0 && dy < 2.2 {
				style.YAlign = text.YTop
				l.Offset.Y = -vg.Points(1.5)
			}
		}
		p.Add(l)
	}
	return nil
}

// limits frames the points with room for their labels.
func limits(points []plotPoint) (x0, x1, y0, y1 float64) {
	x0, y0 = math.Inf(1), math.Inf(1)
	for _, q := range points {
		x0, x1 = min(x0, q.x), max(x1, q.x)
		y0, y1 = min(y0, q.y), max(y1, q.y)
	}
	return x0 / 1.12, x1 * 1.25, y0 / 6, y1 * 60
}

// bitTicks marks the widths one thinks in.
func bitTicks() (ticks []plot.Tick) {
	for _, v := range []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 32, 40, 48, 64, 96, 128} {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
	}
	return ticks
}

// decades marks every other power of ten.
func decades() (ticks []plot.Tick) {
	for e := -14; e <= 4; e++ {
		t := plot.Tick{Value: math.Pow(10, float64(e))}
		if e%2 == 0 {
			t.Label = fmt.Sprintf("1e%+d", e)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

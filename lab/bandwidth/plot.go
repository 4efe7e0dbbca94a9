package bandwidth

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/starling-fl/starling/lab/canvas"
)

var (
	maskedColor = color.RGBA{R: 0x1b, G: 0x5e, B: 0x9e, A: 0xff}
	clearColor  = color.RGBA{R: 0xc2, G: 0x5a, B: 0x12, A: 0xff}
	gridColor   = color.Gray{Y: 0xdd}
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
	slices.SortFunc(out, func(a, b plotPoint) int {
		if a.x != b.x {
			return int(math.Copysign(1, a.x-b.x))
		}
		return int(math.Copysign(1, a.y-b.y))
	})
	return out
}

// Plot draws error against bits, one point a scheme, in the given format ("svg"
// or "png").
func (r *Report) Plot(w io.Writer, format string) error {
	p := plot.New()
	params := 0
	for _, x := range r.Rows {
		params = max(params, x.Params)
	}
	p.Title.Text = fmt.Sprintf("Uplink of %s values: %d devices, shards of %d", thousands(params), r.Cohort, r.Shard)
	p.Title.TextStyle.Font.Size = vg.Points(11)
	p.Title.Padding = vg.Points(6)
	p.X.Label.Text = "bits per parameter, measured at the socket, all included"
	p.Y.Label.Text = "relative squared error of the mean update"
	// Both axes are logarithms on a linear scale: with a logarithmic scale the
	// library reserves room for a centred label as if it stood at the end.
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size = vg.Points(10)
		axis.Tick.Label.Font.Size = vg.Points(9)
		axis.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColor, gridColor
	p.Add(grid)

	masked, open := r.points(true), r.points(false)
	all := append(slices.Clone(masked), open...)
	if len(all) == 0 {
		return fmt.Errorf("bandwidth: every scheme measured is exact: nothing to plot")
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = limits(all)
	p.X.Tick.Marker = plot.ConstantTicks(bitTicks(p.X.Min, p.X.Max))
	p.Y.Tick.Marker = plot.ConstantTicks(decades(p.Y.Min, p.Y.Max))
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
	p.Add(frame{})
	// Text to the right of its mark: a viewer without the plot's fonts lets it
	// run on instead of over the mark.
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.Padding = vg.Points(2)
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(6), -vg.Points(6)
	return render(p, w, format)
}

// render writes the plot: vectors as SVG, or pixels for print at 220 dpi as PNG.
func render(p *plot.Plot, w io.Writer, format string) error {
	const width, height = 14 * vg.Centimeter, 9.5 * vg.Centimeter
	on := canvas.New(format, width, height, 220)
	const margin = 5
	p.Draw(draw.Crop(draw.New(on), margin, -margin, margin, -margin))
	_, err := on.WriteTo(w)
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
			if dx, dy := o.x-q.x, o.y-q.y; o != q && dx > -0.02 && dx < 0.07 && dy >= 0 && dy < 0.7 {
				style.YAlign = text.YTop
				l.Offset.Y = -vg.Points(1.5)
			}
		}
		p.Add(inside{l})
	}
	return nil
}

// inside draws labels without asking for room: limits leaves enough, and a
// label that asks for some makes the whole frame shrink.
type inside struct{ labels *plotter.Labels }

func (i inside) Plot(c draw.Canvas, p *plot.Plot) { i.labels.Plot(c, p) }

// frame closes the axes to a box.
type frame struct{}

func (frame) Plot(c draw.Canvas, _ *plot.Plot) {
	style := draw.LineStyle{Color: color.Black, Width: vg.Points(0.5)}
	c.StrokeLines(style, []vg.Point{{X: c.Min.X, Y: c.Max.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Max.X, Y: c.Min.Y}})
}

// limits frames the points with room for their labels.
func limits(points []plotPoint) (x0, x1, y0, y1 float64) {
	x0, y0 = math.Inf(1), math.Inf(1)
	for _, q := range points {
		x0, x1 = min(x0, q.x), max(x1, q.x)
		y0, y1 = min(y0, q.y), max(y1, q.y)
	}
	return x0 - 0.05, x1 + 0.1, y0 - 0.7, y1 + 1.9
}

// bitTicks marks the widths one thinks in. A tick outside the axis would make
// room for its label.
func bitTicks(lo, hi float64) (ticks []plot.Tick) {
	for _, v := range []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 32, 40, 48, 64, 96, 128} {
		if at := math.Log10(v); at >= lo && at <= hi {
			ticks = append(ticks, plot.Tick{Value: at, Label: fmt.Sprint(v)})
		}
	}
	return ticks
}

// decades marks every power of ten and names every other.
func decades(lo, hi float64) (ticks []plot.Tick) {
	for e := -14; e <= 4; e++ {
		t := plot.Tick{Value: float64(e)}
		if t.Value < lo || t.Value > hi {
			continue
		}
		if e%2 == 0 {
			t.Label = fmt.Sprintf("1e%d", e)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// thousands groups digits by three.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

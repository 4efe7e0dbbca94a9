package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/starling-fl/starling/internal/canvas"
)

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.CrossGlyph{},
}

// shapeOf is a series' sign: where colours begin anew, signs have moved on.
func shapeOf(i int) draw.GlyphDrawer { return shapes[(i+i/len(canvas.Series))%len(shapes)] }

// series is a line of a plot: mean and standard deviation at each x.
type series struct {
	name   string
	x      []float64
	y, err []float64
}

// Plot is a figure in both forms.
type Plot struct {
	Name, Title string
	Caption     string
	SVG, PNG    []byte
}

// chart says what a plot shows.
type chart struct {
	name, title, caption string
	x, y                 string
	logX                 bool
	ticks                []float64 // of x; nil: chosen
	lines                bool      // joins the points of a series
	series               []series
}

func (c chart) draw() (Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(11), vg.Points(6)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = vg.Points(10), vg.Points(9)
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 0xdd}, color.Gray{Y: 0xdd}
	p.Add(grid)
	// Whiskers at one place would cover each other: series stand a little apart.
	least, most := math.Inf(1), math.Inf(-1)
	for _, s := range c.series {
		for _, x := range s.x {
			least, most = min(least, c.at(x)), max(most, c.at(x))
		}
	}
	for i, s := range c.series {
		apart := float64(i/len(canvas.Series)) * 0.012 * (most - least)
		if c.lines {
			apart = (float64(i) - float64(len(c.series)-1)/2) * 0.006 * (most - least)
		}
		if err := c.add(p, s, i, apart); err != nil {
			return Plot{}, err
		}
	}
	if c.logX {
		p.X.Tick.Marker = powers{}
	} else if c.ticks == nil {
		p.X.Tick.Marker = sizes{}
	}
	if c.ticks != nil {
		var ticks []plot.Tick
		for _, v := range c.ticks {
			ticks = append(ticks, plot.Tick{Value: c.at(v), Label: named(v)})
		}
		p.X.Tick.Marker = plot.ConstantTicks(ticks)
	}
	pad := 0.04 * max(p.X.Max-p.X.Min, 1e-9)
	p.X.Min, p.X.Max = p.X.Min-pad, p.X.Max+pad
	pad = 0.06 * max(p.Y.Max-p.Y.Min, 0.5)
	p.Y.Min, p.Y.Max = p.Y.Min-pad, p.Y.Max+pad
	p.Legend.TextStyle.Font.Size, p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(9), vg.Points(2), vg.Points(30)
	p.Legend.Top, p.Legend.Left = true, true
	out := Plot{Name: c.name, Title: c.title, Caption: c.caption}
	var svg, png bytes.Buffer
	err := errors.Join(render(p, &svg, "svg"), render(p, &png, "png"))
	out.SVG, out.PNG = svg.Bytes(), png.Bytes()
	return out, err
}

// at places a value on the x axis.
func (c chart) at(x float64) float64 {
	if c.logX {
		return math.Log10(x)
	}
	return x
}

func (c chart) add(p *plot.Plot, s series, i int, apart float64) error {
	look, dash := canvas.Look(i)
	col := look.Light
	var pts plotter.XYs
	var bars struct {
		plotter.XYs
		plotter.YErrors
	}
	for k := range s.x {
		q := plotter.XY{X: c.at(s.x[k]) + apart, Y: s.y[k]}
		pts = append(pts, q)
		bars.XYs = append(bars.XYs, q)
		bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{s.err[k], s.err[k]})
	}
	line, dots, err := plotter.NewLinePoints(pts)
	if err != nil {
		return err
	}
	line.Color, line.Width = col, vg.Points(1.3)
	for _, length := range dash {
		line.Dashes = append(line.Dashes, vg.Points(length))
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: col, Radius: vg.Points(3), Shape: shapeOf(i)}
	whiskers, err := plotter.NewYErrorBars(bars)
	if err != nil {
		return err
	}
	whiskers.Color, whiskers.CapWidth = col, vg.Points(4)
	p.Add(whiskers)
	if c.lines {
		p.Add(line, dots)
		p.Legend.Add(s.name, line, dots)
		return nil
	}
	p.Add(dots)
	p.Legend.Add(s.name, dots)
	return nil
}

// powers names the decades of an axis of logarithms, and halves where it is short.
type powers struct{}

func (powers) Ticks(lo, hi float64) (ticks []plot.Tick) {
	steps := []float64{1, 2, 5}
	if hi-lo > 2.5 {
		steps = []float64{1}
	}
	for e := math.Floor(lo); e <= hi; e++ {
		for _, m := range steps {
			if at := e + math.Log10(m); at >= lo && at <= hi {
				ticks = append(ticks, plot.Tick{Value: at, Label: human(m * math.Pow(10, e))})
			}
		}
	}
	return ticks
}

// sizes names large numbers as one says them.
type sizes struct{}

func (sizes) Ticks(lo, hi float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(lo, hi)
	for i := range ticks {
		if v, err := strconv.ParseFloat(ticks[i].Label, 64); err == nil {
			ticks[i].Label = human(v)
		}
	}
	return ticks
}

// human writes a number as one says it.
func human(v float64) string {
	for _, u := range []struct {
		at   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.at {
			return strconv.FormatFloat(v/u.at, 'g', 3, 64) + u.name
		}
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// named is how a tick of chosen values is called: settings as they were set, large
// numbers as one says them.
func named(v float64) string {
	if v >= 1e4 {
		return human(v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// render writes the plot: vectors as SVG, or pixels for print at 200 dpi as PNG.
func render(p *plot.Plot, w io.Writer, format string) error {
	const height = 9.5 * vg.Centimeter
	// The legend stands beside the plot, where it covers nothing.
	legend := p.Legend
	p.Legend = plot.NewLegend()
	defer func() { p.Legend = legend }() // for the other format
	side := legend.Rectangle(draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: 100 * vg.Centimeter, Y: height}}}).Size().X + vg.Points(14)
	width := 13.5*vg.Centimeter + side
	on := canvas.New(format, width, height, 200)
	const margin = 6
	all := draw.Crop(draw.New(on), margin, -margin, margin, -margin)
	p.Draw(draw.Crop(all, 0, -side, 0, 0))
	legend.Draw(draw.Crop(all, 13.5*vg.Centimeter-2*margin+vg.Points(10), 0, 0, -vg.Points(26)))
	_, err := on.WriteTo(w)
	return err
}

// byX groups cells into series: one for each value of the other axes, ordered in
// x. value yields x, and whether the cell has one.
func byX(all []*Cell, name func(*Cell) string, value func(*Cell) (float64, bool)) []series {
	type point struct{ x, y, sd float64 }
	points := map[string][]point{}
	var order []string
	for _, c := range all {
		x, ok := value(c)
		if !ok {
			continue
		}
		n := name(c)
		if _, seen := points[n]; !seen {
			order = append(order, n)
		}
		points[n] = append(points[n], point{x, 100 * c.Accuracy.Mean, 100 * c.Accuracy.SD})
	}
	var out []series
	for _, n := range order {
		slices.SortFunc(points[n], func(a, b point) int { return cmp.Compare(a.x, b.x) })
		s := series{name: n}
		for _, q := range points[n] {
			s.x, s.y, s.err = append(s.x, q.x), append(s.y, q.y), append(s.err, q.sd)
		}
		out = append(out, s)
	}
	return out
}

func percent(v float64) string { return fmt.Sprintf("%.1f", 100*v) }

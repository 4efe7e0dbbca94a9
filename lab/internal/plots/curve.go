package plots

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/starling-fl/starling/internal/guarantee"
	"github.com/starling-fl/starling/internal/palette"
)

var (
	blue   = palette.Series[0].Light
	orange = palette.Series[1].Light
	grey   = color.NRGBA{R: 110, G: 110, B: 110, A: 255}
	ink    = color.NRGBA{R: 40, G: 40, B: 40, A: 255}
	rule   = color.NRGBA{R: 226, G: 226, B: 226, A: 255}
)

// Curve draws epsilon over the rounds of a job, as svg, pdf or png.
func (Plots) Curve(w io.Writer, format string, c *guarantee.Curve) error {
	p, err := drawn(c)
	if err != nil {
		return err
	}
	return write(w, format, p)
}

func drawn(c *guarantee.Curve) (*plot.Plot, error) {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font = sans
	}
	q := fmt.Sprintf("q = %.4g", c.Rate)
	if c.Provider > 0 { // the device's coin and the provider's
		q += fmt.Sprintf(" · %.4g", c.Provider)
	}
	p.Title.Text = fmt.Sprintf("Privacy cost at δ = %.3g, %s, %s, z = %.5g", c.Delta, c.Adjacency, q, c.Noise)
	p.Title.TextStyle.Font.Size = vg.Points(11)
	p.Title.TextStyle.Color = ink
	p.Title.Padding = vg.Points(10)
	p.X.Label.Text, p.Y.Label.Text = "rounds", "epsilon (ε)"
	p.X.Min, p.Y.Min = 0, 0
	for _, ax := range []*plot.Axis{&p.X, &p.Y} {
		ax.Label.TextStyle.Font.Size = vg.Points(10)
		ax.Label.TextStyle.Color = ink
		ax.Label.Padding = vg.Points(4)
		ax.Tick.Label.Font.Size = vg.Points(9)
		ax.Tick.Label.Color = ink
		ax.LineStyle.Color = ink
		ax.LineStyle.Width = vg.Points(0.6)
		ax.Tick.LineStyle.Color = ink
		ax.Tick.LineStyle.Width = vg.Points(0.6)
		ax.Tick.Marker = fewTicks{}
		ax.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = rule, rule
	grid.Vertical.Width, grid.Horizontal.Width = vg.Points(0.5), vg.Points(0.5)
	p.Add(grid)

	top, bottom := 0.0, math.Inf(1)
	add := func(name string, col color.Color, width float64, dashes []vg.Length, y func(guarantee.Point) float64) error {
		xy := plotter.XYs{}
		for _, pt := range c.Points {
			if v := y(pt); v > 0 {
				xy = append(xy, plotter.XY{X: float64(pt.Rounds), Y: v})
				top, bottom = max(top, v), min(bottom, v)
			}
		}
		if len(xy) == 0 {
			return nil
		}
		if len(xy) == 1 {
			s, err := plotter.NewScatter(xy)
			if err != nil {
				return err
			}
			s.GlyphStyle = draw.GlyphStyle{Color: col, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
			p.Add(s)
			p.Legend.Add(name, s)
			return nil
		}
		l, err := plotter.NewLine(xy)
		if err != nil {
			return err
		}
		l.LineStyle = draw.LineStyle{Color: col, Width: vg.Points(width), Dashes: dashes}
		p.Add(l)
		p.Legend.Add(name, l)
		return nil
	}
	dash := []vg.Length{vg.Points(5), vg.Points(3)}
	dots := []vg.Length{vg.Points(1.5), vg.Points(2.5)}
	if err := errors.Join(
		add("participation seen by the adversary", orange, 1.4, dash, func(q guarantee.Point) float64 { return q.Visible }),
		add("Rényi bound (rdp)", grey, 1.2, dots, func(q guarantee.Point) float64 { return q.RDP }),
		add("tight bound", blue, 2, nil, func(q guarantee.Point) float64 { return q.Tight }),
	); err != nil {
		return nil, err
	}
	if c.Target > 0 {
		l, err := plotter.NewLine(plotter.XYs{{X: 0, Y: c.Target}, {X: float64(c.Points[len(c.Points)-1].Rounds), Y: c.Target}})
		if err != nil {
			return nil, err
		}
		l.LineStyle = draw.LineStyle{Color: ink, Width: vg.Points(0.8), Dashes: []vg.Length{vg.Points(8), vg.Points(3), vg.Points(2), vg.Points(3)}}
		p.Add(l)
		p.Legend.Add(fmt.Sprintf("budget %.4g", c.Target), l)
		top = max(top, c.Target)
	}
	p.X.Max = float64(c.Points[len(c.Points)-1].Rounds)
	p.Y.Max = top * 1.08
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(10), vg.Points(-6)
	if last := c.Points[len(c.Points)-1]; last.Visible > 5*max(last.Tight, last.RDP) {
		// One linear axis would press the curves that matter onto the floor.
		p.Y.Scale = plot.LogScale{}
		p.Y.Tick.Marker = decadeTicks{}
		p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(bottom)*2)/2), top*6
	}
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.TextStyle.Color = ink
	p.Legend.Padding = vg.Points(3)
	p.Legend.ThumbnailWidth = vg.Points(26)
	return p, nil
}

// fewTicks labels an axis at 4 to 8 round values.
type fewTicks struct{}

// Ticks implements plot.Ticker.
func (fewTicks) Ticks(lo, hi float64) []plot.Tick {
	raw := (hi - lo) / 6
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := unit
	for _, f := range []float64{1, 2, 5, 10} {
		if step = f * unit; step >= raw {
			break
		}
	}
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var ticks []plot.Tick
	for i := math.Ceil(lo / step); i*step <= hi*(1+1e-9); i++ {
		v := i * step
		label := strconv.FormatFloat(v, 'f', digits, 64)
		if math.Abs(hi) >= 1e6 || digits > 5 {
			label = strconv.FormatFloat(v, 'g', 4, 64)
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: label})
	}
	return ticks
}

// decadeTicks labels a logarithmic axis at 1, 2 and 5 of every decade.
type decadeTicks struct{}

// Ticks implements plot.Ticker.
func (decadeTicks) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	wide := hi/lo > 3e3
	for e := math.Floor(math.Log10(lo)); math.Pow(10, e) <= hi; e++ {
		for f := 1.0; f < 10; f++ {
			v := f * math.Pow(10, e)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			label := ""
			if f == 1 || !wide && (f == 2 || f == 5) {
				label = strconv.FormatFloat(v, 'g', 4, 64)
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}

package plots

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/starling-fl/starling/internal/app/guarantee"
	"github.com/starling-fl/starling/internal/leaf/palette"
	"github.com/starling-fl/starling/lab/canvas"
)

var (
	blue   = palette.Series[0].Light
	orange = palette.Series[1].Light
	grey   = color.NRGBA{R: 110, G: 110, B: 110, A: 255}
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
	q := fmt.Sprintf("q = %.4g", c.Rate)
	if c.Provider > 0 { // the device's coin and the provider's
		q += fmt.Sprintf(" · %.4g", c.Provider)
	}
	p := empty(fmt.Sprintf("Privacy cost at δ = %.3g, %s, %s, z = %.5g", c.Delta, c.Adjacency, q, c.Noise), "rounds", "epsilon (ε)")
	p.X.Min, p.Y.Min, p.X.Padding, p.Y.Padding = 0, 0, 0, 0
	last := c.Points[len(c.Points)-1]
	scale := func(epsilon float64) float64 { return epsilon }
	logarithmic := last.Visible > 5*max(last.Tight, last.RDP)
	if logarithmic { // one linear axis would press the curves that matter onto the floor
		scale, p.Y.Tick.Marker = math.Log10, canvas.Powers{}
	}
	top, bottom := 0.0, math.Inf(1)
	add := func(name string, col color.Color, width float64, dashes []vg.Length, y func(guarantee.Point) float64) error {
		xy := plotter.XYs{}
		for _, pt := range c.Points {
			if v := y(pt); v > 0 {
				xy = append(xy, plotter.XY{X: float64(pt.Rounds), Y: scale(v)})
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
		l, err := plotter.NewLine(plotter.XYs{{X: 0, Y: scale(c.Target)}, {X: float64(last.Rounds), Y: scale(c.Target)}})
		if err != nil {
			return nil, err
		}
		l.LineStyle = draw.LineStyle{Color: ink, Width: vg.Points(0.8), Dashes: []vg.Length{vg.Points(8), vg.Points(3), vg.Points(2), vg.Points(3)}}
		p.Add(l)
		p.Legend.Add(fmt.Sprintf("budget %.4g", c.Target), l)
		top = max(top, c.Target)
	}
	p.X.Max, p.Y.Max = float64(last.Rounds), top*1.08
	if logarithmic {
		p.Y.Min, p.Y.Max = math.Floor(math.Log10(bottom)*2)/2, math.Log10(top*6)
	}
	return p, nil
}

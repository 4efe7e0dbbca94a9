// Package plots draws what an operator's commands ask for: the core links nothing that draws.
package plots

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/starling-fl/starling/lab/canvas"
)

// Plots draws each of them.
type Plots struct{}

var ink = color.NRGBA{R: 40, G: 40, B: 40, A: 255}

// empty is a plot without points yet.
func empty(title, x, y string) *plot.Plot {
	p := canvas.Plot(title, x, y)
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		size := style.Font.Size
		style.Font, style.Color = font.Font{Typeface: "Liberation", Variant: "Sans"}, ink
		style.Font.Size = size
	}
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(10), vg.Points(-6)
	return p
}

// write draws p for print, as svg, pdf or png.
func write(w io.Writer, format string, p *plot.Plot) error {
	return canvas.Write(w, format, p, 17*vg.Centimeter, 11*vg.Centimeter)
}

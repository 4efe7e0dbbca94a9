// Package plots draws what an operator's commands ask for: the core links nothing that draws.
package plots

import (
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/starling-fl/starling/lab/canvas"
)

// Plots draws each of them.
type Plots struct{}

// write draws p for print, as svg, pdf or png.
func write(w io.Writer, format string, p *plot.Plot) error {
	c := canvas.New(format, 17*vg.Centimeter, 11*vg.Centimeter, 200)
	p.Draw(draw.Crop(draw.New(c), vg.Points(8), vg.Points(-18), vg.Points(8), vg.Points(-8)))
	_, err := c.WriteTo(w)
	return err
}

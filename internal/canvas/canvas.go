// Package canvas is what a plot is drawn on before it is written.
package canvas

import (
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Canvas can be drawn on, and written as a whole.
type Canvas interface {
	vg.CanvasSizer
	io.WriterTo
}

// New makes a canvas: for the format "png" pixels for print, so many an inch; for any
// other vectors as SVG.
func New(format string, width, height vg.Length, dpi int) Canvas {
	if format == "png" {
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	}
	return vgsvg.New(width, height)
}

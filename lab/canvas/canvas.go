// Package canvas is what a plot is drawn on before it is written.
package canvas

import (
	"io"
	"time"

	pdf "codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Canvas can be drawn on, and written as a whole.
type Canvas interface {
	vg.CanvasSizer
	io.WriterTo
}

// A figure that is drawn again is the same file: a PDF has no date of its own.
func init() {
	pdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	pdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
	pdf.SetDefaultCatalogSort(true)
}

// New makes a canvas: for the format "png" pixels for print, so many an inch; for "pdf" a
// page with its fonts in it; for any other vectors as SVG.
func New(format string, width, height vg.Length, dpi int) Canvas {
	switch format {
	case "png":
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	case "pdf":
		return vgpdf.New(width, height)
	}
	return vgsvg.New(width, height)
}

// Package canvas has what all plots share: their looks, the ticks of their axes, and what they are drawn on before they
// are written.
package canvas

import (
	"image/color"
	"io"
	"math"
	"strconv"
	"time"

	pdf "codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

// New makes a canvas: for the format "png" pixels for print, 200 an inch; for "pdf" a
// page with its fonts in it; for any other vectors as SVG.
func New(format string, width, height vg.Length) Canvas {
	switch format {
	case "png":
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(200))}
	case "pdf":
		return vgpdf.New(width, height)
	}
	return vgsvg.New(width, height)
}

// Margin is left free around what is drawn.
const Margin = 6

// Write draws a plot for itself.
func Write(w io.Writer, format string, p *plot.Plot, width, height vg.Length) error {
	on := New(format, width, height)
	p.Draw(draw.Crop(draw.New(on), Margin, -2*Margin, Margin, -Margin))
	_, err := on.WriteTo(w)
	return err
}

// Plot is an empty plot over a grid, with a legend at the left of its top.
func Plot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(11), vg.Points(6)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = vg.Points(10), vg.Points(9)
		axis.Tick.Marker = Even{}
	}
	p.Legend.TextStyle.Font.Size, p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(9), vg.Points(2), vg.Points(30)
	p.Legend.Top, p.Legend.Left = true, true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 0xdd}, color.Gray{Y: 0xdd}
	p.Add(grid)
	return p
}

// Even places ticks that divide a range evenly.
type Even struct{}

func (Even) Ticks(low, high float64) (ticks []plot.Tick) {
	for _, v := range Evenly(low, high) {
		ticks = append(ticks, plot.Tick{Value: v, Label: Named(v)})
	}
	return ticks
}

// Evenly divides a range by 4 to 8 multiples of 1, 2 or 5 times a power of ten, or the few
// that are in one that has no width.
func Evenly(low, high float64) (at []float64) {
	span := max(high-low, 1e-9)
	step := math.Pow(10, math.Floor(math.Log10(span/4)))
	for _, m := range []float64{5, 2} {
		if span/(step*m) >= 4 {
			step *= m
			break
		}
	}
	for k := math.Ceil(low/step - 1e-9); k*step <= high+1e-9*span; k++ {
		at = append(at, k*step)
	}
	return at
}

// Powers names the decades of an axis whose values are logarithms to base 10, and parts of them where it is short.
type Powers struct{}

func (Powers) Ticks(low, high float64) (ticks []plot.Tick) {
	steps := []float64{1, 2, 5}
	if high-low > 2.5 {
		steps = []float64{1}
	}
	for e := math.Floor(low); e <= high; e++ {
		for _, m := range steps {
			if at := e + math.Log10(m); at >= low && at <= high {
				ticks = append(ticks, plot.Tick{Value: at, Label: Human(m * math.Pow(10, e))})
			}
		}
	}
	return ticks
}

// Human writes a number as one says it.
func Human(v float64) string {
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

// Named returns the label of a tick: small numbers as they were given, large ones by Human.
func Named(v float64) string {
	if v >= 1e4 {
		return Human(v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

package report

import (
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/starling-fl/starling/internal/leaf/palette"
	"github.com/starling-fl/starling/lab/canvas"
)

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.CrossGlyph{},
}

// shapeOf is a series' sign: where colours begin anew, signs have moved on.
func shapeOf(i int) draw.GlyphDrawer { return shapes[(i+i/len(palette.Series))%len(shapes)] }

// Sizes of a figure, in centimetres and points.
const (
	panelHeight = 9.5
	oneWide     = 13.5 // a chart alone
	sideWide    = 8.5  // one of several
	noteHeight  = 16
)

// plot is the chart as the library draws it.
func (c chart) plot() (*plot.Plot, error) {
	p := canvas.Plot(c.title, c.x, c.y)
	// Whiskers at one place would cover each other: series stand a little apart.
	first, last := c.widest()
	least, most := c.seen()
	span := c.at(most) - c.at(least)
	for i, s := range c.series {
		apart := float64(i/len(palette.Series)) * 0.012 * span
		if c.lines || span > 2*(c.at(last)-c.at(first)) {
			apart = (float64(i) - float64(len(c.series)-1)/2) * 0.006 * span
		}
		if err := c.add(p, s, i, apart); err != nil {
			return nil, err
		}
	}
	if values := c.places(); values != nil {
		var ticks []plot.Tick
		for _, v := range values {
			ticks = append(ticks, plot.Tick{Value: c.at(v), Label: canvas.Named(v)})
		}
		p.X.Tick.Marker = plot.ConstantTicks(ticks)
	} else {
		p.X.Tick.Marker = canvas.Powers{}
	}
	p.X.Min, p.X.Max = min(p.X.Min, c.at(least)), max(p.X.Max, c.at(most))
	pad := 0.04 * max(p.X.Max-p.X.Min, 1e-9)
	p.X.Min, p.X.Max = p.X.Min-pad, p.X.Max+pad
	pad = 0.06 * max(p.Y.Max-p.Y.Min, 0.5)
	p.Y.Min, p.Y.Max = p.Y.Min-pad, p.Y.Max+pad
	return p, nil
}

func (c chart) add(p *plot.Plot, s series, i int, apart float64) error {
	look, dash := palette.Look(i)
	col := look.Light
	var pts plotter.XYs
	var bars struct {
		plotter.XYs
		plotter.YErrors
	}
	for _, m := range s.points {
		q := plotter.XY{X: c.at(m.x) + apart, Y: m.y}
		pts = append(pts, q)
		bars.XYs = append(bars.XYs, q)
		bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{m.y - m.low, m.high - m.y})
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

// render writes charts side by side: as vectors in SVG or PDF, or as pixels for print at
// 200 dpi in PNG. Their legend, that of the first, stands beside them, where it covers
// nothing, and what their whiskers are below.
func render(charts []chart, w io.Writer, format string) error {
	each := vg.Length(sideWide) * vg.Centimeter
	if len(charts) == 1 {
		each = oneWide * vg.Centimeter
	}
	plots := [][]*plot.Plot{make([]*plot.Plot, len(charts))}
	low, high := math.Inf(1), math.Inf(-1)
	for i, c := range charts {
		p, err := c.plot()
		if err != nil {
			return err
		}
		plots[0][i], low, high = p, min(low, p.Y.Min), max(high, p.Y.Max)
	}
	var legend plot.Legend
	for i, p := range plots[0] {
		if i == 0 {
			legend = p.Legend
		} else {
			p.Y.Label.Text = ""
		}
		p.Legend, p.Y.Min, p.Y.Max = plot.NewLegend(), low, high
	}
	side := vg.Points(8)
	named := len(charts[0].series) > 1 || charts[0].series[0].name != ""
	if named {
		// A page that lacks the font takes another, a sixth wider at most.
		side = 7*legend.Rectangle(draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: 100 * vg.Centimeter, Y: panelHeight * vg.Centimeter}}}).Size().X/6 + vg.Points(14)
	}
	width := each*vg.Length(len(charts)) + side
	on := canvas.New(format, width, panelHeight*vg.Centimeter+noteHeight)
	all := draw.Crop(draw.New(on), canvas.Margin, -canvas.Margin, canvas.Margin, -canvas.Margin)
	inner := draw.Crop(all, 0, -side, noteHeight, 0)
	for i, at := range plot.Align(plots, draw.Tiles{Rows: 1, Cols: len(charts), PadX: vg.Points(14)}, inner)[0] {
		plots[0][i].Draw(at)
	}
	if named {
		legend.Draw(draw.Crop(all, each*vg.Length(len(charts))-2*canvas.Margin+vg.Points(10), 0, 0, -vg.Points(26)))
	}
	if text := note(charts...); text != "" {
		style := plots[0][0].X.Tick.Label
		style.Color, style.XAlign, style.YAlign = color.Gray{Y: 0x44}, draw.XCenter, draw.YBottom
		style.Font.Size = vg.Points(8)
		all.FillText(style, vg.Point{X: (inner.Min.X + inner.Max.X) / 2, Y: all.Min.Y}, text)
	}
	_, err := on.WriteTo(w)
	return err
}

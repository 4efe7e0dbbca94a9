package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/palette"
)

// privacyCurve is epsilon over the rounds of one job.
type privacyCurve struct {
	rate, noise float64
	provider    float64 // rate of each provider's coin; 0: devices are protected
	delta       float64
	adjacency   string
	target      float64 // a horizontal line, 0 for none
	points      []curvePoint
}

type curvePoint struct {
	rounds                     int
	tight, lower, rdp, visible float64 // tight and lower are 0 with the rdp accountant
}

// curvePoints is about how many numbers of rounds a curve is computed at.
const curvePoints = 28

func checkCurveName(name string) error {
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".svg", ".png", ".csv":
		return nil
	default:
		return command.Usagef("--curve %q: want a name that ends in .svg, .png or .csv", name)
	}
}

// newPrivacyCurve computes the curve from the first round to the last; the
// points are evenly spaced in the square root, along which epsilon is near a line.
func newPrivacyCurve(f *privacyFlags, acct dp.Accountant) (*privacyCurve, error) {
	c := &privacyCurve{rate: f.rate, noise: f.noise, provider: f.providerRate, delta: f.delta}
	last := 0
	for i := 1; i <= curvePoints; i++ {
		n := int(math.Ceil(float64(f.rounds) * math.Pow(float64(i)/curvePoints, 2)))
		if n == last {
			continue
		}
		last = n
		events := []dp.Event{f.planned(n)}
		g, err := dp.Epsilon(events, f.delta, acct)
		if err != nil {
			return nil, err
		}
		c.adjacency = g.Adjacency
		p := curvePoint{rounds: n, rdp: g.RDPEpsilon}
		if acct == dp.Tight {
			p.tight, p.lower = g.Epsilon, g.EpsilonLower
		}
		if f.rate < 1 && g.Sampling != dp.SamplingVisible {
			v, err := dp.VisibleEpsilon(events, f.delta, acct)
			if err != nil {
				return nil, err
			}
			p.visible = v.Epsilon
		}
		c.points = append(c.points, p)
	}
	return c, nil
}

// write writes the curve in the format that the name's ending asks for. A
// file that could not be written whole is removed.
func (c *privacyCurve) write(name string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			os.Remove(name)
		}
	}()
	if strings.EqualFold(filepath.Ext(name), ".csv") {
		return c.writeCSV(f)
	}
	p, err := c.plot()
	if err != nil {
		return err
	}
	const width, height = 17 * vg.Centimeter, 11 * vg.Centimeter
	var canvas vg.CanvasWriterTo
	if strings.EqualFold(filepath.Ext(name), ".png") {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(200))}
	} else if canvas, err = draw.NewFormattedCanvas(width, height, "svg"); err != nil {
		return err
	}
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(8), vg.Points(-18), vg.Points(8), vg.Points(-8)))
	_, err = canvas.WriteTo(f)
	return err
}

func (c *privacyCurve) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"rounds", "sampling_rate", "noise_multiplier", "delta", "adjacency", "epsilon", "epsilon_lower", "rdp_epsilon", "visible_epsilon", "provider_rate"}); err != nil {
		return err
	}
	num := func(x float64) string {
		if x == 0 {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	for _, p := range c.points {
		eps := p.tight
		if eps == 0 {
			eps = p.rdp
		}
		row := []string{strconv.Itoa(p.rounds), num(c.rate), num(c.noise), num(c.delta), c.adjacency, num(eps), num(p.lower), num(p.rdp), num(p.visible), num(c.provider)}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

var (
	curveBlue   = palette.Series[0].Light
	curveOrange = palette.Series[1].Light
	curveGrey   = color.NRGBA{R: 110, G: 110, B: 110, A: 255}
	curveInk    = color.NRGBA{R: 40, G: 40, B: 40, A: 255}
	curveRule   = color.NRGBA{R: 226, G: 226, B: 226, A: 255}
)

func (c *privacyCurve) plot() (*plot.Plot, error) {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font = sans
	}
	q := fmt.Sprintf("q = %.4g", c.rate)
	if c.provider > 0 { // the device's coin and the provider's
		q += fmt.Sprintf(" · %.4g", c.provider)
	}
	p.Title.Text = fmt.Sprintf("Privacy cost at δ = %.3g, %s, %s, z = %.5g", c.delta, c.adjacency, q, c.noise)
	p.Title.TextStyle.Font.Size = vg.Points(11)
	p.Title.TextStyle.Color = curveInk
	p.Title.Padding = vg.Points(10)
	p.X.Label.Text, p.Y.Label.Text = "rounds", "epsilon (ε)"
	p.X.Min, p.Y.Min = 0, 0
	for _, ax := range []*plot.Axis{&p.X, &p.Y} {
		ax.Label.TextStyle.Font.Size = vg.Points(10)
		ax.Label.TextStyle.Color = curveInk
		ax.Label.Padding = vg.Points(4)
		ax.Tick.Label.Font.Size = vg.Points(9)
		ax.Tick.Label.Color = curveInk
		ax.LineStyle.Color = curveInk
		ax.LineStyle.Width = vg.Points(0.6)
		ax.Tick.LineStyle.Color = curveInk
		ax.Tick.LineStyle.Width = vg.Points(0.6)
		ax.Tick.Marker = fewTicks{}
		ax.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = curveRule, curveRule
	grid.Vertical.Width, grid.Horizontal.Width = vg.Points(0.5), vg.Points(0.5)
	p.Add(grid)

	top, bottom := 0.0, math.Inf(1)
	add := func(name string, col color.Color, width float64, dashes []vg.Length, y func(curvePoint) float64) error {
		xy := plotter.XYs{}
		for _, pt := range c.points {
			if v := y(pt); v > 0 {
				xy = append(xy, plotter.XY{X: float64(pt.rounds), Y: v})
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
		add("participation seen by the adversary", curveOrange, 1.4, dash, func(q curvePoint) float64 { return q.visible }),
		add("Rényi bound (rdp)", curveGrey, 1.2, dots, func(q curvePoint) float64 { return q.rdp }),
		add("tight bound", curveBlue, 2, nil, func(q curvePoint) float64 { return q.tight }),
	); err != nil {
		return nil, err
	}
	if c.target > 0 {
		l, err := plotter.NewLine(plotter.XYs{{X: 0, Y: c.target}, {X: float64(c.points[len(c.points)-1].rounds), Y: c.target}})
		if err != nil {
			return nil, err
		}
		l.LineStyle = draw.LineStyle{Color: curveInk, Width: vg.Points(0.8), Dashes: []vg.Length{vg.Points(8), vg.Points(3), vg.Points(2), vg.Points(3)}}
		p.Add(l)
		p.Legend.Add(fmt.Sprintf("budget %.4g", c.target), l)
		top = max(top, c.target)
	}
	p.X.Max = float64(c.points[len(c.points)-1].rounds)
	p.Y.Max = top * 1.08
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(10), vg.Points(-6)
	if last := c.points[len(c.points)-1]; last.visible > 5*max(last.tight, last.rdp) {
		// One linear axis would press the curves that matter onto the floor.
		p.Y.Scale = plot.LogScale{}
		p.Y.Tick.Marker = decadeTicks{}
		p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(bottom)*2)/2), top*6
	}
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.TextStyle.Color = curveInk
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

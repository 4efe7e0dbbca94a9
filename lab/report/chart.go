package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-fl/starling/lab/canvas"
)

// A chart says what one pair of axes shows, whoever draws it.
type chart struct {
	name, title, caption string
	x, y                 string // what the axes are called, with their units
	logX                 bool
	ticks                []float64 // of x; nil: chosen
	lines                bool      // joins the points of a series
	series               []series
}

// series is a line of a chart: means over seeds, and their intervals.
type series struct {
	name   string
	points []mark
}

// mark is a mean over n seeds; low and high are the ends of its 95 % interval, the mean
// itself where n is 1.
type mark struct {
	x, y, low, high float64
	n               int
}

// over is the mean and interval at x over the seeds.
func over(x float64, values []float64) mark {
	m := mark{x: x, y: summarize(values).Mean, n: len(values)}
	m.low, m.high = IntervalT.of(values)
	return m
}

// marks are those of all values, in the order of their x.
func marks(values map[int][]float64) (points []mark) {
	for _, x := range slices.Sorted(maps.Keys(values)) {
		points = append(points, over(float64(x), values[x]))
	}
	return points
}

// note says what the marks and whiskers are, and of how many seeds: a figure is read
// without its caption too.
func note(charts ...chart) string {
	least, most := math.MaxInt, 0
	for _, c := range charts {
		for _, s := range c.series {
			for _, m := range s.points {
				least, most = min(least, m.n), max(most, m.n)
			}
		}
	}
	switch {
	case most == 0:
		return ""
	case most == 1:
		return "One seed: no intervals."
	case least == most:
		return fmt.Sprintf("Means over n = %d seeds; whiskers: 95 %% t intervals of the mean.", most)
	}
	text := fmt.Sprintf("Means over n = %d to %d seeds; whiskers: 95 %% t intervals of the mean", least, most)
	if least == 1 {
		text += ", none of one seed"
	}
	return text + "."
}

// Plot is a figure in every form: vectors for pages and print, pixels, and what LaTeX
// makes anew with its own fonts.
type Plot struct {
	Name, Title string
	Caption     string
	SVG, PNG    []byte
	PDF, TeX    []byte
}

// Formats are the endings of the files that hold plots.
var Formats = []string{".svg", ".pdf", ".tex", ".png"}

// File is the plot in the form that a file's name asks for by its ending.
func (p Plot) File(name string) ([]byte, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".svg":
		return p.SVG, nil
	case ".png":
		return p.PNG, nil
	case ".pdf":
		return p.PDF, nil
	case ".tex":
		return p.TeX, nil
	}
	return nil, CheckPlotName(name)
}

// CheckPlotName refuses names whose ending is no format of plots.
func CheckPlotName(name string) error {
	if slices.Contains(Formats, strings.ToLower(filepath.Ext(name))) {
		return nil
	}
	return fmt.Errorf("report: %.80q: want a name that ends in %s", name, strings.Join(Formats, ", "))
}

// draw makes the figure of one chart.
func (c chart) draw() (Plot, error) { return figure(c.name, c.title, c.caption, c) }

// figure draws charts side by side, which then have one range of y.
func figure(name, title, caption string, charts ...chart) (Plot, error) {
	p := Plot{Name: name, Title: title, Caption: strings.TrimSpace(note(charts...) + " " + caption), TeX: pgfplots(title, charts)}
	err := p.render(func(w io.Writer, format string) error { return render(charts, w, format) })
	return p, err
}

// render draws a plot in each form that the drawing library has.
func (p *Plot) render(draw func(w io.Writer, format string) error) error {
	for format, to := range map[string]*[]byte{"svg": &p.SVG, "png": &p.PNG, "pdf": &p.PDF} {
		var b bytes.Buffer
		if err := draw(&b, format); err != nil {
			return err
		}
		*to = b.Bytes()
	}
	return nil
}

// at places a value on the x axis.
func (c chart) at(x float64) float64 {
	if c.logX {
		return math.Log10(x)
	}
	return x
}

// widest is the least and the largest x.
func (c chart) widest() (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, s := range c.series {
		for _, m := range s.points {
			least, most = min(least, m.x), max(most, m.x)
		}
	}
	return least, most
}

// seen is the range of x that is shown: where all x are next to equal, a twenty-fifth of
// them around them, so that ticks differ by more than what they are called.
func (c chart) seen() (least, most float64) {
	least, most = c.widest()
	if room := 0.02*max(math.Abs(least), math.Abs(most)) - (most-least)/2; room > 0 && !c.logX {
		least, most = least-room, most+room
	}
	return least, most
}

// scaled is the chart with logarithms where x spans most of a decade.
func (c chart) scaled() chart {
	least, most := c.widest()
	c.logX = least > 0 && most/least >= 8
	return c
}

// places are where ticks of x stand; nil: where the logarithms' decades are.
func (c chart) places() []float64 {
	least, most := c.seen()
	if c.ticks == nil && !c.logX {
		pad := 0.02 * (most - least) // a budget is spent to a thousandth
		return canvas.Evenly(least-pad, most+pad)
	}
	return c.ticks
}

// byX makes series of cells, ordered in x: one for each name. value yields x, and whether
// the cell has one, of the values that its seeds have.
func byX(all []*Cell, name func(*Cell) string, value func(*Cell) (float64, bool), values func(*Cell) []float64) []series {
	var out []series
	at := map[string]int{}
	for _, c := range all {
		x, ok := value(c)
		v := values(c)
		if !ok || len(v) == 0 {
			continue
		}
		n := name(c)
		i, seen := at[n]
		if !seen {
			i = len(out)
			at[n], out = i, append(out, series{name: n})
		}
		out[i].points = append(out[i].points, over(x, v))
	}
	for _, s := range out {
		slices.SortFunc(s.points, func(a, b mark) int { return cmp.Compare(a.x, b.x) })
	}
	return out
}

func percent(v float64) string { return fmt.Sprintf("%.1f", 100*v) }

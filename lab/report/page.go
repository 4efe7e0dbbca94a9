package report

import (
	"bytes"
	_ "embed" // its style
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/starling-fl/starling/lab/canvas"
	"github.com/starling-fl/starling/lab/sweep"
)

//go:embed report.css
var style string

// html is one page without a reference to anything outside of it.
func (r *Report) html() ([]byte, error) {
	var b bytes.Buffer
	if err := r.page().Render(&b); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return b.Bytes(), nil
}

func (r *Report) page() g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content("default-src 'none'; img-src data:; style-src 'unsafe-inline'")),
			h.TitleEl(g.Text(r.Name+" – Starling")),
			h.StyleEl(g.Raw(style)),
		),
		h.Body(
			h.H1(g.Text(r.Name)),
			h.P(h.Class("sub"), g.Textf(`%d of %d simulations. Nothing here protects anybody: an epsilon is what the simulated deployment would spend.
The rank was chosen on validation data, the test split reports; the search over settings is not charged.`, r.Done, r.Of)),
			r.means(),
			r.failures(),
			r.differences(),
			g.Map(r.Plots, Plot.figure),
			g.Map(r.Searched, func(s string) g.Node { return h.P(g.Text("Searched: " + s + ".")) }),
			r.settings(),
		),
	))
}

func (r *Report) means() g.Node {
	measures := r.Measures()
	head := g.Group{r.axes()}
	for _, m := range measures {
		head = append(head, cell(h.Th, m+", %"))
	}
	for _, name := range []string{"seeds", "values", "rho", "signal", "noise", "clipped, %", "epsilon", "bytes a device"} {
		head = append(head, cell(h.Th, name))
	}
	return g.Group{
		h.H2(g.Text(capital(measures[0]))),
		h.Div(h.Class("wide"), h.Table(
			h.Caption(g.Text("Mean and standard deviation over seeds. Rho is the noise's norm in the mean update over the clip norm.")),
			h.Tr(head),
			g.Map(r.Cells, func(c *Cell) g.Node { return h.Tr(r.place(c.On), c.figures()) }),
		)),
	}
}

// figures are a cell's columns, the first measure in bold.
func (c *Cell) figures() g.Node {
	out := g.Group{}
	for i, m := range c.Measured() {
		mean := g.Text(percent(m.Mean))
		if i == 0 {
			mean = h.B(mean)
		}
		out = append(out, h.Td(mean, g.If(m.N > 1, g.Text(" ± "+percent(m.SD)))))
	}
	for _, s := range []string{strconv.Itoa(c.Accuracy.N), strconv.Itoa(c.Values), three(c.Rho), three(c.Signal), three(c.Noise),
		percent(c.Clipped), c.epsilon(), canvas.Human(c.Bytes)} {
		out = append(out, cell(h.Td, s))
	}
	return out
}

func (r *Report) failures() g.Node {
	return g.If(len(r.Failed) > 0, g.Group{
		h.H2(g.Text("Runs that failed")),
		h.Dl(g.Map(r.Failed, func(f sweep.Failure) g.Node {
			return term(r.Place(f), f.Error)
		})),
	})
}

func (r *Report) differences() g.Node {
	row := func(p Paired) g.Node {
		return h.Tr(r.place(p.On), left(h.Td, r.Against(p)), cell(h.Td, strconv.Itoa(p.N)),
			h.Td(h.Class(map[string]string{"better": "up", "worse": "down"}[p.verdict()]), g.Text(signed(p.Mean))),
			cell(h.Td, signed(p.Low)+" … "+signed(p.High)), left(h.Td, said(p)))
	}
	return g.If(len(r.Pairs) > 0, g.Group{
		h.H2(g.Text("Paired differences")),
		h.Div(h.Class("wide"), h.Table(
			h.Caption(g.Text(capital(r.Measures()[0])+` minus that of the point it is compared with, in points: same data, division and cohorts seed by seed. The interval is the
95 % interval of this mean alone; p is of a two-sided t test, corrected by Holm over this table. Fewer than five seeds are not tested.`)),
			h.Tr(r.axes(), left(h.Th, "against"), cell(h.Th, "seeds"), cell(h.Th, "difference"), cell(h.Th, "95 %"), left(h.Th, "Holm")),
			g.Map(r.Pairs, row),
		)),
	})
}

// figure is a plot as an image: ours, and it cannot run anything.
func (p Plot) figure() g.Node {
	return h.Figure(
		h.Img(h.Alt(p.Title), h.Src("data:image/svg+xml;base64,"+base64.StdEncoding.EncodeToString(p.SVG))),
		h.FigCaption(g.Text(p.Caption)),
	)
}

func (r *Report) settings() g.Node {
	return g.Group{
		h.H2(g.Text("Settings that all runs share")),
		h.Dl(
			g.Map(r.Fixed, func(s Setting) g.Node {
				if s.Value == "" {
					s.Value = "–"
				}
				return term(s.Key, s.Value)
			}),
			term("base", "SHA-256 "+r.Base[:min(len(r.Base), 12)]+"…"),
			term("engine", strings.Join(r.Engines, " ")),
			term("program", strings.Join(r.Version, " ")),
			h.Dt(g.Text("clients’ data")), h.Dd(g.Map(r.Data, func(s string) g.Node { return g.Group{g.Text(s), h.Br()} })),
		),
	}
}

func (r *Report) axes() g.Node {
	return g.Map(r.Axes, func(a sweep.Axis) g.Node { return left(h.Th, a.Name) })
}

// place is where a point stands, a column an axis.
func (r *Report) place(on map[string]string) g.Node {
	return g.Map(r.Axes, func(a sweep.Axis) g.Node { return left(h.Td, on[a.Name]) })
}

func cell(element func(...g.Node) g.Node, text string) g.Node { return element(g.Text(text)) }

func left(element func(...g.Node) g.Node, text string) g.Node {
	return element(h.Class("l"), g.Text(text))
}

func term(name, value string) g.Node {
	return g.Group{h.Dt(g.Text(name)), h.Dd(g.Text(value))}
}

func signed(v float64) string { return fmt.Sprintf("%+.1f", 100*v) }

func three(v float64) string { return fmt.Sprintf("%.3g", v) }

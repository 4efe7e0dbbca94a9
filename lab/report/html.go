package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"unicode"

	"github.com/starling-fl/starling/lab/sweep"
)

//go:embed report.html.tmpl
var page string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"percent": percent,
	"signed":  func(v float64) string { return fmt.Sprintf("%+.1f", 100*v) },
	"g":       func(v float64) string { return fmt.Sprintf("%.3g", v) },
	"human":   human,
	"said":    said,
	"epsilon": (*Cell).epsilon,
	"verdictClass": func(p Paired) string {
		return map[string]string{"better": "up", "worse": "down"}[p.verdict()]
	},
	"image": func(svg []byte) template.URL {
		// Ours, and as an image it cannot run anything.
		return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg))
	},
	"capital": capital,
	"short":   func(s string) string { return s[:min(len(s), 12)] },
}).Parse(page))

// html is one page without a reference to anything outside of it.
func (r *Report) html() ([]byte, error) {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, r); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return b.Bytes(), nil
}

// latex writes the tables for booktabs.
func (r *Report) latex() []byte {
	var b bytes.Buffer
	row := func(cells ...string) { fmt.Fprintf(&b, "%s \\\\\n", strings.Join(cells, " & ")) }
	names := func() (out []string) {
		for _, a := range r.Axes {
			out = append(out, escape(a.Name))
		}
		return out
	}
	measures := r.Measures()
	fmt.Fprintf(&b, "%% %s: %d of %d runs. Needs booktabs.\n", escape(r.Name), r.Done, r.Of)
	fmt.Fprintf(&b, "\\begin{tabular}{%srrrrrr}\n\\toprule\n", strings.Repeat("l", len(r.Axes)))
	row(append(names(), "values", "$\\rho$", "$\\varepsilon$", "seeds", measures[0], measures[1])...)
	b.WriteString("\\midrule\n")
	for _, c := range r.Cells {
		var line []string
		for _, a := range r.Axes {
			line = append(line, escape(c.On[a.Name]))
		}
		row(append(line, fmt.Sprint(c.Values), fmt.Sprintf("%.3g", c.Rho), c.epsilon(), fmt.Sprint(c.Accuracy.N),
			"$"+c.Measured()[0].percent(` \pm `)+"$", "$"+c.Measured()[1].percent(` \pm `)+"$")...)
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	for _, s := range r.Searched {
		fmt.Fprintf(&b, "\n%% Searched: %s.\n", escape(s))
	}
	if len(r.Pairs) == 0 {
		return b.Bytes()
	}
	fmt.Fprintf(&b, "\n%% Paired differences in %s, points, with 95 %% intervals and p values corrected by Holm over the table.\n\\begin{tabular}{%slrrrr}\n\\toprule\n", measures[0], strings.Repeat("l", len(r.Axes)))
	row(append(names(), "against", "seeds", "difference", "95\\,\\%", "$p$")...)
	b.WriteString("\\midrule\n")
	for _, p := range r.Pairs {
		var line []string
		for _, a := range r.Axes {
			line = append(line, escape(p.On[a.Name]))
		}
		test := "not tested"
		if p.P != nil {
			test = fmt.Sprintf("$%.2g$", *p.P)
		}
		row(append(line, escape(r.Against(p)), fmt.Sprint(p.N), fmt.Sprintf("$%+.1f$", 100*p.Mean), fmt.Sprintf("$%+.1f \\ldots %+.1f$", 100*p.Low, 100*p.High), test)...)
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	return b.Bytes()
}

// Place names a run by all axes, the seed among them.
func (r *Report) Place(f sweep.Failure) string {
	var out []string
	for _, a := range r.index.Axes {
		out = append(out, a.Name+" "+f.On[a.Name])
	}
	return strings.Join(out, ", ")
}

// Against names what a cell is compared with: the axes in which they differ.
func (r *Report) Against(p Paired) string {
	var out []string
	for _, a := range r.Axes {
		if p.On[a.Name] != p.Against[a.Name] {
			out = append(out, p.Against[a.Name])
		}
	}
	return strings.Join(out, ", ")
}

var tex = strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "<", `\textless{}`, ">", `\textgreater{}`, "|", `\textbar{}`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`)

// escape makes a stranger's text harmless in LaTeX: no character but a letter or a sign,
// and none that ends a line.
func escape(s string) string {
	return tex.Replace(strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, s))
}

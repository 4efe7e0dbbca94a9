package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

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

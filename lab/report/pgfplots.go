package report

import (
	"bytes"
	"fmt"
	"image/color"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/palette"
	"github.com/starling-fl/starling/lab/canvas"
)

// texMarks are pgfplots' names of shapes, in the same order.
var texMarks = []string{"*", "square*", "triangle", "triangle*", "o", "square", "x"}

// pgfplots writes charts side by side as a LaTeX document of their own, with the figures in
// it: an author changes fonts, colours and words there, and \input or \includegraphics it.
func pgfplots(title string, charts []chart) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%% %s\n", escape(title))
	b.WriteString(`% Compile it as it is (pdflatex), or move what stands between \begin{tikzpicture} and
% \end{tikzpicture} into a document that has these packages.
\documentclass[border=2pt]{standalone}
\usepackage{pgfplots}
\usepgfplotslibrary{groupplots}
\pgfplotsset{compat=1.16}
`)
	for i, c := range palette.Series {
		r, g, bl, _ := color.Color(c.Light).RGBA()
		fmt.Fprintf(&b, "\\definecolor{series%d}{HTML}{%02X%02X%02X}\n", i, r>>8, g>>8, bl>>8)
	}
	b.WriteString("\\begin{document}\n\\begin{tikzpicture}\n")
	width := "8.6cm"
	if len(charts) > 1 {
		width = "6cm"
	}
	fmt.Fprintf(&b, "\\begin{groupplot}[\n  group style={group size=%d by 1, horizontal sep=%s, y descriptions at=edge left},\n", len(charts), "0.6cm")
	fmt.Fprintf(&b, "  width=%s, height=6.5cm, grid=major, grid style={black!12}, tick align=outside, tick pos=left,\n", width)
	b.WriteString("  enlarge x limits=0.04, enlarge y limits=0.06, label style={font=\\small}, tick label style={font=\\footnotesize},\n")
	b.WriteString("  legend style={font=\\footnotesize, draw=none, at={(1.03,1)}, anchor=north west}, legend cell align=left,\n")
	b.WriteString("  every axis plot/.append style={line width=0.9pt, mark size=1.8pt}, scaled ticks=false]\n")
	for i, c := range charts {
		c.axis(&b, charts, i)
	}
	b.WriteString("\\end{groupplot}\n")
	if text := note(charts...); text != "" {
		fmt.Fprintf(&b, "\\node[anchor=north, font=\\scriptsize, text=black!75] at (current bounding box.south) {%s};\n", escape(text))
	}
	b.WriteString("\\end{tikzpicture}\n\\end{document}\n")
	return b.Bytes()
}

// axis writes one chart. The legend, that of all, stands beside the last.
func (c chart) axis(b *bytes.Buffer, all []chart, i int) {
	options := []string{fmt.Sprintf("xlabel={%s}", escape(c.x))}
	if i == 0 {
		options = append(options, fmt.Sprintf("ylabel={%s}", escape(c.y)))
	}
	low, high := heights(all)
	options = append(options, "ymin="+decimal(low), "ymax="+decimal(high))
	least, most := c.seen()
	options = append(options, "xmin="+decimal(least), "xmax="+decimal(most))
	if c.logX {
		options = append(options, "xmode=log", "log ticks with fixed point")
	}
	if values := c.places(); values != nil {
		var at, names []string
		for _, v := range values {
			at, names = append(at, decimal(v)), append(names, "{"+escape(canvas.Named(v))+"}")
		}
		options = append(options, "xtick={"+strings.Join(at, ",")+"}", "xticklabels={"+strings.Join(names, ",")+"}", "minor xtick={}")
	}
	fmt.Fprintf(b, "\\nextgroupplot[%s]\n", strings.Join(options, ", "))
	for k, s := range c.series {
		_, dash := palette.Look(k)
		style := []string{fmt.Sprintf("color=series%d", k%len(palette.Series)), "mark=" + texMarks[(k+k/len(palette.Series))%len(texMarks)], "mark options={solid}"}
		switch {
		case !c.lines:
			style = append(style, "only marks")
		case dash != nil:
			var parts []string
			for j, length := range dash {
				parts = append(parts, []string{"on ", "off "}[j%2]+decimal(length)+"pt")
			}
			style = append(style, "dash pattern={"+strings.Join(parts, " ")+"}")
		}
		fmt.Fprintf(b, "\\addplot[%s, error bars/.cd, y dir=both, y explicit, error bar style={solid, line width=0.6pt}]\n", strings.Join(style, ", "))
		b.WriteString("  table[x=x, y=y, y error plus=plus, y error minus=minus] {\n  x y plus minus n\n")
		for _, m := range s.points {
			fmt.Fprintf(b, "  %s %s %s %s %d\n", decimal(m.x), decimal(m.y), decimal(m.high-m.y), decimal(m.y-m.low), m.n)
		}
		b.WriteString("  };\n")
		if i == len(all)-1 && s.name != "" {
			fmt.Fprintf(b, "\\addlegendentry{%s}\n", escape(s.name))
		}
	}
}

// heights are the least and the largest end of a whisker in all charts.
func heights(all []chart) (low, high float64) {
	first := true
	for _, c := range all {
		for _, s := range c.series {
			for _, m := range s.points {
				if first {
					low, high, first = m.low, m.high, false
				}
				low, high = min(low, m.low), max(high, m.high)
			}
		}
	}
	if high-low < 0.5 { // a flat line is not blown up
		low, high = low-0.25, high+0.25
	}
	return low, high
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }

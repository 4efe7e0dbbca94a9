package dossier

import (
	_ "embed" // its style
	"fmt"
	"io"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

//go:embed page.css
var style string

// HTML writes it as one page, without scripts and without anything from elsewhere.
func (d Dossier) HTML(w io.Writer) error {
	if err := d.page().Render(w); err != nil {
		return fmt.Errorf("dossier: %w", err)
	}
	return nil
}

func (d Dossier) page() g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content("default-src 'none'; style-src 'unsafe-inline'")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.TitleEl(g.Text(d.Title)),
			h.StyleEl(g.Raw(style)),
		),
		h.Body(
			h.H1(g.Text(d.Title)),
			h.Div(h.Class("verdict"), texts(h.P, d.Verdict)),
			h.H2(g.Text("What was audited, and how")),
			h.Dl(g.Map(d.Facts, func(f Fact) g.Node {
				return g.Group{h.Dt(g.Text(f.Name)), h.Dd(g.Text(f.Value))}
			})),
			g.Map(d.Tables, Table.page),
			g.If(len(d.Limits) > 0, g.Group{h.H2(g.Text("What it does not show")), h.Ul(texts(h.Li, d.Limits))}),
		),
	))
}

func (t Table) page() g.Node {
	return g.Group{
		h.H2(g.Text(t.Title)),
		g.If(t.About != "", h.P(g.Text(t.About))),
		g.If(len(t.Head) > 0, h.Div(h.Class("wide"), h.Table(
			g.If(t.Words, h.Class("words")),
			h.THead(h.Tr(g.Map(t.Head, func(s string) g.Node { return h.Th(h.Scope("col"), g.Text(s)) }))),
			h.TBody(g.Map(t.Rows, func(row []string) g.Node { return g.Group{h.Tr(texts(h.Td, row)), g.Text("\n")} })),
		))),
	}
}

// texts are elements of one kind, one for each text.
func texts(element func(...g.Node) g.Node, of []string) g.Group {
	return g.Map(of, func(s string) g.Node { return element(g.Text(s)) })
}

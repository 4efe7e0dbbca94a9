package main

import (
	"fmt"
	"regexp"
	"strings"
)

const preamble = `# Benchmarks

Words are in the [glossary](GLOSSARY.md). **Every table here is written by ` + "`make bench`" + `** (` + "`make bench ONLY=secagg`" + `
for one section); nothing is edited by hand, and each section says when, from what and on what machine it was made.
Times are processor time unless a column says wall. The machines are shared: read ratios within a table, not
milliseconds across tables. What was measured on the way, and before a change, is in the
[changelog](../CHANGELOG.md).
`

// result is what a section's command made.
type result struct{ made, table string }

var mark = regexp.MustCompile(`(?s)<!-- begin (\S+): (.*?) -->\n(.*?)\n<!-- end \S+ -->`)

// parse finds the results that a document holds.
func parse(document string) map[string]result {
	all := map[string]result{}
	for _, m := range mark.FindAllStringSubmatch(document, -1) {
		_, table, _ := strings.Cut(m[3], "\n\n") // after the line that repeats what it was made of
		all[m[1]] = result{made: m[2], table: table}
	}
	return all
}

// render writes the document; a section without a result says so.
func render(results map[string]result) string {
	var b strings.Builder
	b.WriteString(preamble)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", s.title, strings.TrimSpace(s.about))
		r, ok := results[s.name]
		if !ok {
			fmt.Fprintf(&b, "Not run yet: `make bench ONLY=%s`.\n", s.name)
			continue
		}
		fmt.Fprintf(&b, "<!-- begin %s: %s -->\nMade by `%s`,\n%s.\n\n%s\n<!-- end %s -->\n", s.name, r.made, s.command(),
			strings.ReplaceAll(r.made, "; ", ";\n"), strings.TrimSpace(r.table), s.name)
	}
	return b.String()
}

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// The two documents, in docs.
const (
	pageName   = "BENCHMARKS.md"
	tablesName = "results/benchmarks.md"
)

const preamble = `# Benchmarks, the tables

` + "`make bench`" + ` writes every table here (` + "`make bench ONLY=secagg`" + ` one section). Each section says when, from what
commit and on what machine it was made. Times are processor time unless a column says wall. The machines are shared:
read ratios within a table, not milliseconds across tables. Behind each section is the SHA-256 of what its command
printed; a test fails for a figure that is changed by hand. [The page to decide by](../BENCHMARKS.md) quotes these
tables.
`

// result is what a section's command made.
type result struct {
	made, table string
	sum         string // SHA-256 of the two, as they were when the section was written
	// found says that the sum was taken of what was in the document on 2026-11-23, which had none before: from then on it
	// holds, but nothing says that the command printed it.
	found bool
}

// printed is what a section's command printed just now.
func printed(made, table string) result {
	r := result{made: made, table: strings.TrimSpace(table)}
	r.sum = r.hash()
	return r
}

func (r result) hash() string {
	sum := sha256.Sum256([]byte(r.made + "\n\n" + strings.TrimSpace(r.table)))
	return hex.EncodeToString(sum[:])
}

// unclean says that the figures are of code that no commit holds.
func (r result) unclean() bool {
	return strings.Contains(r.made, "dirty") || strings.Contains(r.made, "changes to it") || strings.Contains(r.made, "unknown commit")
}

var mark = regexp.MustCompile(`(?s)<!-- begin (\S+): (.*?) -->\n(.*?)\n<!-- end \S+: (found )?sha256 ([0-9a-f]*) -->`)

// parse finds the results that a document holds.
func parse(document string) map[string]result {
	all := map[string]result{}
	for _, m := range mark.FindAllStringSubmatch(document, -1) {
		_, table, _ := strings.Cut(m[3], "\n\n") // after the line that repeats what it was made of
		all[m[1]] = result{made: m[2], table: table, found: m[4] != "", sum: m[5]}
	}
	return all
}

// render writes the document; a section without a result says so.
func render(results map[string]result) string {
	var b strings.Builder
	b.WriteString(preamble)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", s.Title, strings.TrimSpace(s.About))
		r, ok := results[s.Name]
		if !ok {
			fmt.Fprintf(&b, "Not run yet: `make bench ONLY=%s`.\n", s.Name)
			continue
		}
		fmt.Fprintf(&b, "<!-- begin %s: %s -->\nMade by `%s`,\n%s.\n", s.Name, r.made, s.command(), strings.ReplaceAll(r.made, "; ", ";\n"))
		if r.unclean() {
			b.WriteString("**Not of a commit:** the tree had changes that none holds, so these figures cannot be made again exactly.\n")
		}
		as := ""
		if r.found {
			b.WriteString("Hashed as printed here on 2026-11-23; before, nothing held it.\n")
			as = "found "
		}
		fmt.Fprintf(&b, "\n%s\n<!-- end %s: %ssha256 %s -->\n", strings.TrimSpace(r.table), s.Name, as, r.sum)
	}
	return b.String()
}

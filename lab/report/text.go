package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// epsilon is a cell's, of which runs without noise have none.
func (c *Cell) epsilon() string {
	if c.Epsilon == 0 {
		return "none"
	}
	if c.Search > 0 {
		return fmt.Sprintf("%.3g, %.3g searched", c.Epsilon, c.Search)
	}
	return fmt.Sprintf("%.3g", c.Epsilon)
}

// said is a pair's p value and verdict.
func said(p Paired) string {
	if p.P == nil {
		return p.verdict()
	}
	return fmt.Sprintf("p %.2g: %s", *p.P, p.verdict())
}

// Print writes the tables for a terminal, and where the other files are.
func (r *Report) Print(w io.Writer, paths []string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	measures := r.Measures()
	for _, a := range r.Axes {
		fmt.Fprintf(t, "%s\t", a.Name)
	}
	fmt.Fprintln(t, "values\trho\tepsilon\tseeds\t"+strings.Join(measures[:], "\t"))
	for _, c := range r.Cells {
		for _, a := range r.Axes {
			fmt.Fprintf(t, "%s\t", c.On[a.Name])
		}
		fmt.Fprintf(t, "%d\t%.3g\t%s\t%d\t%s\t%s\n", c.Values, c.Rho, c.epsilon(), c.Accuracy.N,
			c.Measured()[0].percent(" ± "), c.Measured()[1].percent(" ± "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, p := range r.Pairs {
		if i == 0 {
			fmt.Fprintf(w, "\n%s against the point compared with, in points, 95 %% interval, and the p value of a t test, corrected by Holm\n", capital(measures[0]))
		}
		name := ""
		for _, a := range r.Axes {
			name += p.On[a.Name] + "  "
		}
		fmt.Fprintf(w, "  %s– %s: %+.1f  (%+.1f … %+.1f, %d seeds), %s\n", name, r.Against(p), 100*p.Mean, 100*p.Low, 100*p.High, p.N, said(p))
	}
	for _, s := range r.Searched {
		fmt.Fprintf(w, "\nSearched: %s.\n", s)
	}
	if r.Done < r.Of {
		fmt.Fprintf(w, "\n%d of %d runs are done, %d failed, %d are missing.\n", r.Done, r.Of, len(r.Failed), len(r.Missing))
		if len(r.Missing) > 0 {
			fmt.Fprintf(w, "missing: %s\n", some(r.Missing))
		}
	}
	for _, f := range r.Failed {
		fmt.Fprintf(w, "failed: %s: %s\n", r.Place(f), f.Error)
	}
	_, err := fmt.Fprintln(w, "\nFiles:")
	for _, p := range paths {
		if err == nil {
			_, err = fmt.Fprintln(w, " ", p)
		}
	}
	return err
}

// capital begins a measure's name as a sentence begins.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

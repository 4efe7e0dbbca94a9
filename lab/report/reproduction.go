package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/quant"
)

// opening begins the document, judging says how claims are judged, preface what a preset's page holds, estimates how the
// costs of presets that were not run are estimated.
var (
	//go:embed opening.txt
	opening string
	//go:embed judging.txt
	judging string
	//go:embed tables.txt
	preface string
	//go:embed estimates.txt
	estimates string
)

// figures says of each of a publication's figures what it shows and what makes it.
//
//go:embed figures.md
var figures string

// Document is the page that [Reproduction] opens with, Results the folder of its other pages. Verdicts lists each claim
// with its verdict, Waiting the presets that were not run.
const (
	Document = "REPRODUCTION.md"
	Results  = "results"
	Verdicts = Results + "/claims.md"
	Waiting  = Results + "/not-run.md"
)

// Reproduction compares what was published with the tables of a folder: one NAME.csv for each preset that was run, as
// starling sweep leaves results.csv. It returns, by path: the [Document], the [Verdicts], what is [Waiting], and one page
// in [Results] for each preset that was run.
func Reproduction(folder fs.FS) (map[string][]byte, error) {
	all, err := claims()
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	var b, verdicts, missing bytes.Buffer
	b.WriteString(opening)
	verdicts.WriteString("# Claims that were run\n\n[Reproduction](../" + Document + ") says how they are judged.\n\n")
	if err := summary(&b, &verdicts, folder, all); err != nil {
		return nil, err
	}
	b.WriteString(judging + figures)
	missing.WriteString(estimates + "| preset | of | what it takes |\n| --- | --- | --- |\n")
	for _, c := range all {
		page, err := c.page(folder, &missing)
		if err != nil {
			return nil, err
		}
		if page != nil {
			pages[c.at()] = page
		}
	}
	pages[Verdicts] = fold(verdicts.Bytes())
	pages[Waiting] = fold(missing.Bytes())
	var attacked bytes.Buffer
	attacked.WriteString("# Attacks on models\n")
	if err := attacks(&attacked, folder); err != nil {
		return nil, err
	}
	pages[Results+"/attacks.md"] = fold(attacked.Bytes())
	pages[Document] = fold(b.Bytes())
	return pages, nil
}

// at is the path of a preset's page.
func (c claim) at() string { return Results + "/" + c.Preset + ".md" }

// page is what a preset's runs came to; nil, and a row of what was not run, where there are none.
func (c claim) page(folder fs.FS, missing *bytes.Buffer) ([]byte, error) {
	stated, err := sweep.StatedOf(c.Preset)
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(folder, c.Preset+".csv")
	if errors.Is(err, fs.ErrNotExist) {
		command := fmt.Sprintf("`starling sweep --preset %s%s`", c.Preset, c.flags(stated))
		fmt.Fprintf(missing, "| %s | %s | %s |\n", command, c.Title, strings.Join(slices.DeleteFunc([]string{c.takes(), refused(stated)},
			func(s string) bool { return s == "" }), " "))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\nPublished: %s.\n\n%s", c.Title, c.Source, preface)
	if c.Base != "" {
		_, plan, err := sweep.Preset(c.Preset)
		if err == nil {
			err = c.beside(&b, plan)
		}
		if err != nil {
			return nil, err
		}
	}
	if r := refused(stated); r != "" {
		b.WriteString(r + "\n\n")
	}
	if err := c.table(&b, folder, text); err != nil {
		return nil, fmt.Errorf("%s.csv: %w", c.Preset, err)
	}
	fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(c.Why))
	if c.Traffic != nil {
		c.Traffic.write(&b)
	}
	return fold(b.Bytes()), nil
}

// takes is what all of a preset's runs take, in words.
func (c claim) takes() string {
	if c.Takes.Documents > 0 {
		return c.Takes.text()
	}
	_, plan, err := sweep.Preset(c.Preset)
	if err != nil || c.Cost == 0 {
		return "not measured."
	}
	return cost(c.Cost, len(plan.Points)) + "."
}

// refused says which rows of a preset a coordinator refuses today, and why; "" if it takes all.
func refused(stated sweep.Stated) string {
	if len(stated.Refused) == 0 {
		return ""
	}
	var rows []string
	for _, r := range stated.Refused {
		which := "every row"
		if len(r.On) > 0 {
			var values []string
			for _, axis := range slices.Sorted(maps.Keys(r.On)) {
				values = append(values, r.On[axis])
			}
			which = strings.Join(values, ", ")
		}
		rows = append(rows, fmt.Sprintf("%s (%s values)", which, humanize.Comma(int64(r.Values))))
	}
	return fmt.Sprintf("**Refused today:** %s. A round carries updates of %s values at most.",
		strings.Join(rows, ", "), humanize.Comma(quant.MaxDimension))
}

// noData says that a preset simulates what it generates.
const noData = "none"

// flags are what a sweep of the preset is given.
func (c claim) flags(stated sweep.Stated) string {
	flags := " --data " + cmp.Or(c.Data, "R8.train.txt.gz")
	if c.Data == noData {
		flags = ""
	}
	return flags + stated.Flag()
}

// fold breaks the lines of paragraphs at 120 columns; tables stay.
func fold(text []byte) []byte {
	var out bytes.Buffer
	var words []string
	flush := func() {
		width := 0
		for i, w := range words {
			switch {
			case i > 0 && width+1+utf8.RuneCountInString(w) > 120:
				out.WriteByte('\n')
				width = 0
			case i > 0:
				out.WriteByte(' ')
				width++
			}
			out.WriteString(w)
			width += utf8.RuneCountInString(w)
		}
		if len(words) > 0 {
			out.WriteByte('\n')
		}
		words = nil
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") {
			flush()
			out.WriteString(line + "\n")
			continue
		}
		if strings.HasPrefix(line, "- ") { // an entry of a list
			flush()
		}
		words = append(words, strings.Fields(line)...)
	}
	flush()
	return out.Bytes()
}

// entry is a row of results.csv.
type entry map[string]string

func (e entry) number(column string) float64 {
	v, err := strconv.ParseFloat(e[column], 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// point is the rows of one place in the grid, by seed.
type point struct {
	on   map[string]string
	rows map[string]entry
}

func (p *point) mean(column string) float64 {
	sum := 0.0
	for _, seed := range slices.Sorted(maps.Keys(p.rows)) {
		sum += p.rows[seed].number(column)
	}
	return sum / float64(len(p.rows))
}

// megabytes are those of all messages of the clients that were trained, both ways, in
// all rounds; "" if a table does not say.
func (p *point) megabytes() string {
	all := p.mean("rounds") * p.mean("cohort_mean") * (p.mean("bytes_up") + p.mean("bytes_down"))
	if math.IsNaN(all) {
		return ""
	}
	return fmt.Sprintf("%.3g", all/1e6)
}

// read groups a table's rows by everything but the seed, in their order: of the runs that were made
// and that it has, those that validation chose of a search.
func read(text []byte) (axes []string, all []*point, made int, err error) {
	table, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, nil, 0, fmt.Errorf("results.csv: %w", err)
	}
	if len(table) < 2 || !slices.Contains(table[0], "test_accuracy") {
		return nil, nil, 0, errors.New("is no results.csv")
	}
	for _, column := range table[0] {
		if axis, ok := strings.CutPrefix(column, "on:"); ok && axis != seedAxis {
			axes = append(axes, axis)
		}
	}
	at := map[string]*point{}
	for _, cells := range table[1:] {
		e, on, key := entry{}, map[string]string{}, ""
		for i, column := range table[0] {
			e[column] = cells[i]
		}
		if e["chosen"] == "false" { // a search, of which validation chose another
			continue
		}
		for _, axis := range axes {
			on[axis] = e["on:"+axis]
			key += on[axis] + "\x00"
		}
		if at[key] == nil {
			at[key] = &point{on, map[string]entry{}}
			all = append(all, at[key])
		}
		at[key].rows[e["seed"]] = e
	}
	return axes, all, len(table) - 1, nil
}

// table writes a preset's results beside what was published of them.
func (c claim) table(b *bytes.Buffer, folder fs.FS, text []byte) error {
	axes, all, made, err := read(text)
	if err != nil {
		return err
	}
	builds, err := cleanness(folder, c.Preset+".csv", text, all)
	if err != nil {
		return err
	}
	_, plan, err := sweep.Preset(c.Preset)
	if err != nil {
		return err
	}
	ours := []measure{{"ours", "test_accuracy"}, {"macro-F1", "test_macro_f1"}}
	if answers(all) {
		ours = []measure{{"ours, ANLS", "test_anls"}, {"exact match", "test_accuracy"}}
	}
	head := append(slices.Clone(axes), "published", ours[0].head, ours[1].head, "seeds")
	if c.Baseline != "" {
		head = append(head, "minus "+c.Baseline)
	}
	head = append(head, "rank chosen", "d", "rho", "signal", "noise", "clipped", "MB")
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	bases, engines, versions, done := map[string]bool{}, map[string]bool{}, map[string]bool{}, 0
	for _, p := range all {
		var cells, ranks []string
		for _, a := range axes {
			cells = append(cells, p.on[a])
		}
		var main, beside []float64
		for _, seed := range slices.Sorted(maps.Keys(p.rows)) {
			e := p.rows[seed]
			main, beside = append(main, 100*e.number(ours[0].column)), append(beside, 100*e.number(ours[1].column))
			ranks = append(ranks, e["rank"])
			bases[e["base"]], engines[e["engine"]], versions[e["version"]] = true, true, true
			done++
		}
		s := summarize(main)
		cells = append(cells, c.of(p.on), plusMinus(s), fmt.Sprintf("%.1f", summarize(beside).Mean), strconv.Itoa(s.N))
		if c.Baseline != "" {
			cells = append(cells, p.minus(all, c.Baseline))
		}
		cells = append(cells, strings.Join(ranks, ", "), fmt.Sprintf("%.0f", p.mean("values")), fmt.Sprintf("%.3g", p.mean("rho")),
			fmt.Sprintf("%.3g", p.mean("signal_norm")), fmt.Sprintf("%.3g", p.mean("noise_norm")), fmt.Sprintf("%.0f %%", 100*p.mean("clipped")),
			p.megabytes())
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	c.against(b, axes, all)
	names := func(set map[string]bool, length int) string {
		var names []string
		for _, n := range slices.Sorted(maps.Keys(set)) {
			names = append(names, fmt.Sprintf("%.*s", length, n))
		}
		return strings.Join(names, "; ")
	}
	chosen := ""
	if made != done { // a search
		chosen = fmt.Sprintf(", of which validation chose %d", done)
	}
	fmt.Fprintf(b, "\n%d of the preset's %d runs%s. Base %s (SHA-256); engine %s; build %s.\n", made, len(plan.Points), chosen, names(bases, 12), names(engines, 60), names(versions, 40))
	if builds != "" {
		fmt.Fprintf(b, "\n%s\n", builds)
	}
	return nil
}

// measure is a column of results.csv under the name that a table gives it.
type measure struct{ head, column string }

// answers reports whether a table's runs were asked questions: their score is ANLS, and
// their accuracy is of exact matches.
func answers(all []*point) bool {
	for _, p := range all {
		for _, e := range p.rows {
			if e["test_anls"] == "" {
				return false
			}
		}
	}
	return len(all) > 0
}

// against compares the proposed methods with those of the publication, in pairs.
func (c claim) against(b *bytes.Buffer, axes []string, all []*point) {
	first := true
	for _, p := range all {
		if c.Proposes == "" || !strings.HasPrefix(p.on["method"], c.Proposes) {
			continue
		}
		for _, o := range all {
			d := p.differences(all, o.on["method"])
			if !strings.HasPrefix(o.on["method"], c.Against) || len(d) == 0 || !maps.Equal(p.with(o.on["method"]), o.on) {
				continue
			}
			if first {
				head := append(others(axes, "method"), "method", "minus", "seeds", "difference")
				fmt.Fprintf(b, "\n| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
				first = false
			}
			var cells []string
			for _, a := range others(axes, "method") {
				cells = append(cells, p.on[a])
			}
			cells = append(cells, p.on["method"], o.on["method"], strconv.Itoa(len(d)), interval(d))
			fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
}

func others(axes []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(axes), func(a string) bool { return a == name })
}

// with is the point's place with another method.
func (p *point) with(method string) map[string]string {
	on := maps.Clone(p.on)
	on["method"] = method
	return on
}

// minus is the paired difference from a method.
func (p *point) minus(all []*point, method string) string {
	d := p.differences(all, method)
	if len(d) == 0 {
		return ""
	}
	return interval(d)
}

// interval is the differences' mean with its interval, which one alone has not.
func interval(d []float64) string {
	mean := fmt.Sprintf("%+.1f", summarize(d).Mean)
	if len(d) < 2 {
		return mean
	}
	low, high := IntervalT.of(d)
	return fmt.Sprintf("%s (%+.1f to %+.1f)", mean, low, high)
}

// plusMinus is a mean with its spread, which one alone has not.
func plusMinus(s Summary) string {
	if s.N < 2 {
		return fmt.Sprintf("%.1f", s.Mean)
	}
	return fmt.Sprintf("%.1f ± %.1f", s.Mean, s.SD)
}

// differences from a method at the same place, seed by seed, in points.
func (p *point) differences(all []*point, method string) []float64 {
	if m, ok := p.on["method"]; !ok || m == method {
		return nil
	}
	column := ""
	if answers(all) {
		column = anls
	}
	return differences(all, p.on, p.with(method), column)
}

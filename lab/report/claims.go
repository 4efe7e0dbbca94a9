package report

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/lab/sweep"
)

// published are the figures of publications, in files that are read in the order of their names:
// a YAML document has a limit of keys.
//
//go:embed published*.yaml
var published embed.FS

// claim is what a publication says of a preset's grid.
type claim struct {
	Preset string `yaml:"preset"`
	Title  string `yaml:"title"`
	Source string `yaml:"source"`
	// Base and Data are what a run is given (Data: R8 where it says nothing), Cost its
	// seconds of one core, measured; Paper is how the publication set what the preset sets.
	Base  string  `yaml:"base"`
	Data  string  `yaml:"data"`
	Cost  float64 `yaml:"cost"`
	Paper *paper  `yaml:"paper"`
	// Division is how the clients' data are divided, where the files say so.
	Division string `yaml:"division"`
	Rows     []struct {
		On        map[string]string `yaml:"on"`
		Published float64           `yaml:"published"` // percent
	} `yaml:"rows"`
	Claims []statement `yaml:"claims"`
	Why    string      `yaml:"why"`   // why ours differ
	Takes  takes       `yaml:"takes"` // by all of the preset's runs at the publication's size; estimated

	Proposes string   `yaml:"proposes"` // begins the names of the methods that the publication proposes
	Against  string   `yaml:"against"`  // and of those that it holds them against
	Baseline string   `yaml:"baseline"` // the method that is taken from every other, in pairs of one seed
	Traffic  *traffic `yaml:"traffic"`
}

// statement is a sentence of the publication that a paired difference can hold or not.
type statement struct {
	Says string            `yaml:"says"`
	Of   map[string]string `yaml:"of"`   // the point of the grid, by axis
	Than map[string]string `yaml:"than"` // what is taken from it, seed by seed
	// Column is what is compared: "" is accuracy in points, [snr] signal over noise,
	// [chosenRank] the rank that validation chose, [anls] ANLS in points.
	Column string `yaml:"column"`
	// Above and Below bound the difference that the sentence speaks of; one may be missing.
	Above *float64 `yaml:"above"`
	Below *float64 `yaml:"below"`
	// Noise says that the sentence is about noise: without a Control where noise costs
	// something, it is not tested.
	Noise   bool     `yaml:"noise"`
	Control *control `yaml:"control"`
}

// snr compares the norm of the exact mean update with that of the noise in it.
const snr = "signal to noise"

// anls is that of answers, the mean over their sources of each one's mean.
const anls = "anls"

// chosenRank is the rank that is best on validation texts at the end.
const chosenRank = "rank"

func claims() ([]claim, error) {
	var all []claim
	files, err := fs.Glob(published, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("report: published figures: %w", err)
	}
	for _, name := range files {
		text, err := published.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("report: published figures: %w", err)
		}
		var some []claim
		if err := strict.Decode(text, &some); err != nil {
			return nil, fmt.Errorf("report: %s: %w", name, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// of is the published accuracy of a cell; a dash if there is none.
func (c claim) of(on map[string]string) string {
	for _, r := range c.Rows {
		match := true
		for axis, value := range r.On {
			match = match && on[axis] == value
		}
		if match {
			return strconv.FormatFloat(r.Published, 'f', 1, 64)
		}
	}
	return "–"
}

// summary writes each claim of the presets that were run to verdicts, and to b how many there are of each verdict.
func summary(b, verdicts *bytes.Buffer, folder fs.FS, all []claim) error {
	verdicts.WriteString("| claim | run | difference | claimed | detects | noise costs | p (Holm) | verdict |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	waiting := 0
	var papers []string
	counts := map[string]map[string]int{} // by paper and verdict
	for _, c := range all {
		text, err := fs.ReadFile(folder, c.Preset+".csv")
		if errors.Is(err, fs.ErrNotExist) {
			waiting += len(c.Claims)
			continue
		}
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		_, points, _, err := read(text)
		if err != nil {
			return fmt.Errorf("%s.csv: %w", c.Preset, err)
		}
		_, plan, err := sweep.Preset(c.Preset)
		if err != nil {
			return err
		}
		paper, _, _ := strings.Cut(c.Preset, "-")
		if counts[paper] == nil {
			papers, counts[paper] = append(papers, paper), map[string]int{}
		}
		for _, f := range c.judge(plan, points) {
			difference, where := "", c.Preset
			if len(f.d) > 0 {
				difference = interval(f.d)
				where = fmt.Sprintf("[%s](%[1]s.md), %d seeds", c.Preset, len(f.d))
			}
			fmt.Fprintf(verdicts, "| %s | %s | %s | %s | %s | %s | %s | %s |\n",
				f.Says, where, difference, f.bound(), f.told(), f.costs(), f.corrected(), f.verdict)
			kind := f.verdict
			if kind != shown && kind != contradicted && kind != notShown {
				kind = "not tested"
			}
			counts[paper][kind]++
		}
	}
	b.WriteString("| presets of | shown | not shown | contradicted | not tested |\n| --- | --- | --- | --- | --- |\n")
	for _, paper := range papers {
		of := counts[paper]
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d |\n", paper, of[shown], of[notShown], of[contradicted], of["not tested"])
	}
	fmt.Fprintf(b, "\n[Each claim with its verdict](%s); [attacks on trained models](%s/attacks.md). Another %d claims belong to\n"+
		"[presets that were not run](%s).\n", Verdicts, Results, waiting, Waiting)
	return nil
}

// bound is how a table says them.
func (s statement) bound() string {
	var parts []string
	if s.Above != nil {
		parts = append(parts, fmt.Sprintf("above %g", *s.Above))
	}
	if s.Below != nil {
		parts = append(parts, fmt.Sprintf("below %g", *s.Below))
	}
	return strings.Join(parts, ", ")
}

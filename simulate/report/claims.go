package report

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/strict"
)

//go:embed published.yaml
var published []byte

// claim is what a publication says of a preset's grid.
type claim struct {
	Preset string `yaml:"preset"`
	Title  string `yaml:"title"`
	Source string `yaml:"source"`
	Rows   []struct {
		On        map[string]string `yaml:"on"`
		Published float64           `yaml:"published"` // percent
	} `yaml:"rows"`
	Claims []statement `yaml:"claims"`
	Why    string      `yaml:"why"` // why ours differ
}

// statement is a sentence of the publication that a paired difference can hold or not.
type statement struct {
	Says string            `yaml:"says"`
	Of   map[string]string `yaml:"of"`   // the point of the grid, by axis
	Than map[string]string `yaml:"than"` // what is taken from it, seed by seed
	// Column is what is compared: "" is accuracy in points, [snr] signal over noise.
	Column string `yaml:"column"`
	// Above and Below bound the difference that the sentence speaks of; one may be missing.
	Above *float64 `yaml:"above"`
	Below *float64 `yaml:"below"`
}

// snr compares the norm of the exact mean update with that of the noise in it.
const snr = "signal to noise"

func claims() ([]claim, error) {
	var all []claim
	if err := strict.Decode(published, &all); err != nil {
		return nil, fmt.Errorf("report: published figures: %w", err)
	}
	return all, nil
}

// of is the published accuracy of a cell; a dash where there is none.
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

// claimed is the method that the publication proposes, asGood the points by which the
// lower end of its difference may be below zero for it to be at least as good, of at
// least so many seeds.
const (
	claimed    = "DyLoRA 1-16"
	asGood     = -1
	leastSeeds = 3
)

// asGoodAs says whether a difference with this interval is at least as good.
func asGoodAs(seeds int, low, high float64) string {
	switch {
	case seeds < leastSeeds:
		return tooFew
	case low >= asGood:
		return "yes"
	case high < asGood:
		return "no"
	}
	return notShown
}

const (
	notShown = "not shown"
	tooFew   = "too few seeds"
)

// verdict holds an interval against what a statement says of the difference.
func (s statement) verdict(seeds int, low, high float64) string {
	above, below := s.bounds()
	switch {
	case seeds < leastSeeds:
		return tooFew
	case low > above && high < below:
		return "shown"
	case high <= above || low >= below:
		return "contradicted"
	}
	return notShown
}

// summary writes what the tables of a folder say of every statement.
func summary(b *bytes.Buffer, folder fs.FS, all []claim) error {
	b.WriteString(`
## What our runs say of the claims

"Shown" is a 95 % interval of the paired difference that lies within what the claim says of it, "contradicted" one that lies
outside of it; any other is "not shown". It speaks of the base and the rounds of the section that is named, not of the paper's.

| claim | where | difference | claimed | seeds | our runs |
| --- | --- | --- | --- | --- | --- |
`)
	for _, c := range all {
		text, err := fs.ReadFile(folder, c.Preset+".csv")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("report: %w", err)
		}
		var points []*point
		if err == nil {
			if _, points, err = read(text); err != nil {
				return fmt.Errorf("%s.csv: %w", c.Preset, err)
			}
		}
		for _, s := range c.Claims {
			d := s.differences(points)
			if len(d) == 0 {
				fmt.Fprintf(b, "| %s | %s |  | %s | 0 | not run |\n", s.Says, c.Title, s.bound())
				continue
			}
			low, high := bootstrap(d)
			fmt.Fprintf(b, "| %s | %s | %s | %s | %d | %s |\n", s.Says, c.Title, interval(d), s.bound(), len(d),
				s.verdict(len(d), low, high))
		}
	}
	return nil
}

// bounds are those of the difference: infinite where the statement has none.
func (s statement) bounds() (above, below float64) {
	above, below = math.Inf(-1), math.Inf(1)
	if s.Above != nil {
		above = *s.Above
	}
	if s.Below != nil {
		below = *s.Below
	}
	return above, below
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

// differences are those that the statement speaks of, seed by seed.
func (s statement) differences(all []*point) []float64 {
	find := func(on map[string]string) *point {
		for _, p := range all {
			if maps.Equal(p.on, on) {
				return p
			}
		}
		return nil
	}
	of, than := find(s.Of), find(s.Than)
	if of == nil || than == nil {
		return nil
	}
	value := func(e entry) float64 {
		if s.Column == snr {
			return e.number("signal_norm") / e.number("noise_norm")
		}
		return 100 * e.number("test_accuracy")
	}
	var d []float64
	for _, seed := range slices.Sorted(maps.Keys(of.rows)) {
		if o, ok := than.rows[seed]; ok {
			d = append(d, value(of.rows[seed])-value(o))
		}
	}
	return d
}

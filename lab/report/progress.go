package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/starling-fl/starling/lab/sweep"
)

// PresetProgress counts the done and missing runs of a preset's table.
type PresetProgress struct {
	Preset  string `json:"preset"`
	Planned int    `json:"planned"`
	Made    int    `json:"made"`
	// Other counts rows of runs that the preset no longer has.
	Other   int      `json:"other,omitempty"`
	Missing []string `json:"missing,omitempty"` // places on the axes
}

// Progress says of each preset which of its runs a folder of tables has, one NAME.csv a
// preset, as [Reproduction] reads them.
func Progress(folder fs.FS) (all []PresetProgress, err error) {
	for _, name := range sweep.Presets() {
		_, plan, err := sweep.Preset(name)
		if err != nil {
			return nil, err
		}
		have, rows := map[string]bool{}, 0
		axes := slices.DeleteFunc(slices.Clone(plan.Axes), func(a sweep.Axis) bool { return a.Search })
		text, err := fs.ReadFile(folder, name+".csv")
		if err == nil {
			_, points, _, err := read(text)
			if err != nil {
				return nil, fmt.Errorf("%s.csv: %w", name, err)
			}
			for _, p := range points {
				for _, e := range p.rows {
					rows++
					on := map[string]string{}
					for _, a := range axes {
						on[a.Name] = e["on:"+a.Name]
					}
					have[sweep.Place(axes, on)] = true
				}
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		p, seen := PresetProgress{Preset: name}, map[string]bool{}
		for _, at := range plan.Points {
			place := sweep.Place(axes, at.On)
			if seen[place] {
				continue // a trial of a search
			}
			seen[place] = true
			if p.Planned++; have[place] {
				p.Made++
			} else {
				p.Missing = append(p.Missing, place)
			}
		}
		p.Other = max(0, rows-p.Made)
		all = append(all, p)
	}
	return all, nil
}

// PrintProgress writes a table of presets, with the missing runs of those that were begun.
func PrintProgress(w io.Writer, all []PresetProgress) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "preset\tplanned\tmade\tmissing\tother")
	for _, p := range all {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", p.Preset, p.Planned, p.Made, len(p.Missing), p.Other)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range all {
		if p.Made > 0 && len(p.Missing) > 0 {
			if _, err := fmt.Fprintf(w, "\n%s: missing %s\n", p.Preset, some(p.Missing)); err != nil {
				return err
			}
		}
	}
	return nil
}

// some lists the first of many places.
func some(places []string) string {
	const most = 8
	if len(places) <= most {
		return strings.Join(places, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(slices.Clone(places[:most]), "; "), len(places)-most)
}

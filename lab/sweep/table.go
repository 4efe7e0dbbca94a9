package sweep

import (
	"bytes"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// Index describes a grid's folder for reports.
type Index struct {
	Name    string            `json:"name"`
	Axes    []Axis            `json:"axes"`
	Compare map[string]string `json:"compare,omitempty"`
	Runs    []Run             `json:"runs"` // in the order of the grid
	// AccountSearch is the distribution of the number of runs of a search whose privacy is
	// counted; "" if none is.
	AccountSearch string `json:"account_search,omitempty"`
}

// Run names a point of the grid by its folder.
type Run struct {
	ID string            `json:"id"`
	On map[string]string `json:"on"`
}

// Names of the files in a grid's folder; runs are in RunsFolder.
const (
	IndexFile  = "sweep.json"
	TableFile  = "results.csv"
	RunsFolder = "runs"
)

// Keep writes a grid's index, and takes over what was made of its runs under older names.
// Two points whose files have the same contents are refused.
func (l *Lab) Keep(p *Plan, dir string) error {
	x := Index{Name: p.Name, Axes: p.Axes, Compare: p.Compare, AccountSearch: p.Search}
	seen := map[string]map[string]string{}
	for _, at := range p.Points {
		id, err := l.ID(at.Settings)
		if err != nil {
			return err
		}
		if other, ok := seen[id]; ok {
			return badSetting("two points of the grid are the same simulation: %v and %v", other, at.On)
		}
		seen[id] = at.On
		// One that another process is making under its old name says so when its turn comes.
		if err := l.adopt(at.Settings, id, filepath.Join(dir, RunsFolder)); err != nil && !errors.Is(err, ErrBusy) {
			return err
		}
		x.Runs = append(x.Runs, Run{id, at.On})
	}
	b, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, RunsFolder), 0o755); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, IndexFile), append(b, '\n'), 0o644)
}

// Read returns a grid's index and the runs that are done, in the order of the grid.
func Read(dir string) (*Index, []*Record, error) {
	b, err := os.ReadFile(filepath.Join(dir, IndexFile))
	if err != nil {
		return nil, nil, named.Errorf("not a sweep's folder: %w", err)
	}
	var x Index
	if err := json.Unmarshal(b, &x); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, IndexFile), err)
	}
	var done []*Record
	for _, run := range x.Runs {
		if id, err := hex.DecodeString(run.ID); err != nil || len(id) != 8 {
			return nil, nil, fmt.Errorf("%s: run %q has no name of ours", filepath.Join(dir, IndexFile), run.ID)
		}
		r, err := readRecord(filepath.Join(dir, RunsFolder, run.ID))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		r.ID, r.On = run.ID, run.On
		done = append(done, r)
	}
	return &x, done, nil
}

// Strays are the runs that are done in a grid's folder and no point of its index: those of
// a sweep file as it was before it was changed. They are in no table.
func Strays(dir string, x *Index) ([]string, error) {
	folders, err := os.ReadDir(filepath.Join(dir, RunsFolder))
	if err != nil {
		return nil, err
	}
	var strays []string
	for _, f := range folders {
		if slices.ContainsFunc(x.Runs, func(r Run) bool { return r.ID == f.Name() }) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, RunsFolder, f.Name(), recordFile)); err == nil {
			strays = append(strays, f.Name())
		}
	}
	return strays, nil
}

// Table writes one row a run: its place in the grid, every setting, and what it
// came to.
func Table(x *Index, records []*Record) ([]byte, error) {
	var settings []string
	flats := make([]map[string]string, len(records))
	for i, r := range records {
		flat, err := r.Settings.Flat()
		if err != nil {
			return nil, err
		}
		for _, file := range FileSettings {
			if flat[file] != "" { // its hash is in population_of
				flat[file] = filepath.Base(flat[file])
			}
		}
		flats[i] = flat
		for k := range maps.Keys(flat) {
			if !slices.Contains(settings, k) {
				settings = append(settings, k)
			}
		}
	}
	slices.Sort(settings)
	header := []string{"run"}
	chosen := Chosen(x, records)
	search := len(x.Searched()) > 0
	for _, a := range x.Axes {
		kind := "on:"
		if a.Search {
			kind = "search:"
		}
		header = append(header, kind+a.Name)
	}
	if search {
		header = append(header, "chosen")
	}
	if x.AccountSearch != "" {
		header = append(header, "search_epsilon")
	}
	header = append(header, settings...)
	header = append(header, "population_of", "engine", "version", "base", "values", "rho", "noise_multiplier", "epsilon_spent", "delta_spent",
		"signal_norm", "noise_norm", "clipped", "cohort_mean", "bytes_up", "bytes_down", "rank", "validation_accuracy", "test_accuracy", "test_macro_f1", "seconds")
	answers := slices.ContainsFunc(records, func(r *Record) bool { return r.ANLS != nil })
	if answers {
		header = append(header, "test_anls")
	}
	transcribed := slices.ContainsFunc(records, func(r *Record) bool { return r.WordErrors != nil })
	if transcribed {
		header = append(header, "test_word_error_rate", "test_character_error_rate")
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.Write(header); err != nil {
		return nil, err
	}
	num := func(v float64) string { return strconv.FormatFloat(v, 'g', 10, 64) }
	for i, r := range records {
		epsilon, delta := num(r.Epsilon), num(r.Delta)
		if r.Guarantee == noGuarantee {
			epsilon, delta = "none", "none"
		}
		row := []string{r.ID}
		for _, a := range x.Axes {
			row = append(row, r.On[a.Name])
		}
		if search {
			row = append(row, strconv.FormatBool(slices.Contains(chosen, r)))
		}
		if x.AccountSearch != "" {
			whole := "none"
			if r.Search != nil {
				whole = num(r.Search.Epsilon)
			}
			row = append(row, whole)
		}
		for _, k := range settings {
			row = append(row, flats[i][k])
		}
		row = append(row, r.Data, r.Engine, r.Version, r.Base, strconv.Itoa(r.Values), num(r.Rho), num(r.NoiseMultiplier), epsilon, delta,
			num(r.SignalNorm), num(r.NoiseNorm), num(r.Clipped), num(r.Cohort), num(r.BytesUp), num(r.BytesDown),
			strconv.Itoa(r.Rank), num(r.Validation), num(r.Accuracy), num(r.MacroF1), num(r.Seconds))
		if answers {
			cell := ""
			if r.ANLS != nil {
				cell = num(*r.ANLS)
			}
			row = append(row, cell)
		}
		if transcribed {
			for _, rate := range []*float64{r.WordErrors, r.CharacterErrors} {
				cell := ""
				if rate != nil {
					cell = num(*rate)
				}
				row = append(row, cell)
			}
		}
		if err := w.Write(row); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

// KeepTable writes the table of finished runs.
func KeepTable(dir string) error {
	x, records, err := Read(dir)
	if err != nil {
		return err
	}
	b, err := Table(x, records)
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, TableFile), b, 0o644)
}

package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/internal/leaf/durable"
)

// Failure is a failed run, such as one whose training diverged. It is kept for reports until the run succeeds.
type Failure struct {
	ID      string            `json:"id"`
	On      map[string]string `json:"on"` // by axis of the grid
	Version string            `json:"version"`
	Error   string            `json:"error"`
}

const failureFile = "failed.json"

// maxFailure bounds what is kept of an error's text, in bytes.
const maxFailure = 4096

// KeepFailure writes the reason of a failure into the run's folder below dir.
func (l *Lab) KeepFailure(p Point, dir string, why error) (Failure, error) {
	id, err := l.ID(p.Settings)
	if err != nil {
		return Failure{}, err
	}
	f := Failure{ID: id, On: p.On, Version: l.Version, Error: why.Error()}
	f.Error = f.Error[:min(len(f.Error), maxFailure)]
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return f, err
	}
	folder := filepath.Join(dir, id)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return f, err
	}
	return f, durable.Replace(filepath.Join(folder, failureFile), append(b, '\n'), 0o644)
}

// Failures returns the failures of an index's unfinished runs.
func Failures(dir string, x *Index) ([]Failure, error) {
	var failed []Failure
	for _, run := range x.Runs {
		folder := filepath.Join(dir, RunsFolder, run.ID)
		if _, err := os.Stat(filepath.Join(folder, recordFile)); err == nil {
			continue
		}
		f := Failure{}
		if err := readJSON(filepath.Join(folder, failureFile), &f); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		f.ID, f.On = run.ID, run.On
		failed = append(failed, f)
	}
	return failed, nil
}

// readJSON reads a small file of a run.
func readJSON(path string, into any) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > maxRecord {
		return fmt.Errorf("%s: %d bytes, the limit is %d", path, info.Size(), maxRecord)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s cannot be read; remove it, and the sweep makes the run anew: %w", path, err)
	}
	return nil
}

package demo

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// HeadOnlyRecord is the accuracy that training the head alone reached on a
// task under the demo's own settings. It takes a run of its own, so the demo
// quotes a recorded figure and says so.
type HeadOnlyRecord struct {
	Task     string  `json:"task"`     // generatedTask, or the hash of a file
	Settings string  `json:"settings"` // Config.settings
	Accuracy float64 `json:"accuracy"`
	MacroF1  float64 `json:"macro_f1"`
}

//go:embed headonly.json
var headOnlyJSON []byte

// generatedTask names the generated invoices of a seed and generator version.
func generatedTask(version string, seed uint64) string {
	return fmt.Sprintf("%s seed %d", version, seed)
}

// fileTask names a file, or a folder of images, by the hash of what it holds.
func fileTask(sha256 string) string { return "sha256 " + sha256 }

func headOnlyRecords(data []byte) ([]HeadOnlyRecord, error) {
	var all []HeadOnlyRecord
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("head-only records: %w", err)
	}
	return all, nil
}

// HeadOnlyOf returns the figure recorded for a task under exactly these settings, nil if there is none.
func (f Config) HeadOnlyOf(task string) (*HeadOnlyRecord, error) {
	settings := f.settings()
	all, err := headOnlyRecords(headOnlyJSON)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Task == task && all[i].Settings == settings {
			return &all[i], nil
		}
	}
	return nil, nil
}

// recordHeadOnly puts a figure into the file of records that the next build
// embeds.
func recordHeadOnly(path string, r HeadOnlyRecord) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("[]"), nil
	}
	if err != nil {
		return err
	}
	all, err := headOnlyRecords(data)
	if err != nil {
		return err
	}
	known := false
	for i := range all {
		if all[i].Task == r.Task && all[i].Settings == r.Settings {
			all[i], known = r, true
		}
	}
	if !known {
		all = append(all, r)
	}
	out, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(out, '\n'), 0o644)
}

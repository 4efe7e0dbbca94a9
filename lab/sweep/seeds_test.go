package sweep

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestSeedsOfARun: runs beside it that differ in the seed alone are its repetitions, in the
// order of their seeds; other settings, builds and bases are not, nor what is no run.
func TestSeedsOfARun(t *testing.T) {
	dir := t.TempDir()
	made := func(folder string, change func(*Record)) *Record {
		t.Helper()
		r := &Record{Settings: DefaultSettings(), Base: "b", Engine: "program", Version: "v1"}
		r.Settings.Seed = 3
		r.Settings.Job = map[string]any{"rounds": 20}
		change(r)
		b, err := json.Marshal(r)
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, folder), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, folder, recordFile), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	own := made("own", func(*Record) {})
	made("other", func(r *Record) { r.Settings.Seed = 1; r.Data = "another division" })
	made("epsilon", func(r *Record) { r.Settings.Seed = 4; r.Settings.Job["privacy"] = map[string]any{"epsilon": 8} })
	made("build", func(r *Record) { r.Settings.Seed, r.Version = 4, "v2" })
	made("base", func(r *Record) { r.Settings.Seed, r.Base = 4, "c" })
	if err := os.Mkdir(filepath.Join(dir, "begun"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "results.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Seeds(dir, own)
	if err != nil || len(all) != 2 || all[0].Settings.Seed != 1 || all[1] != own {
		t.Errorf("%d runs, %v", len(all), err)
	}
}

package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/bases"
	"github.com/starling-fl/starling/job"
)

// Whoever submits a job past the command line has it measured on a file in public/, and on no other.
func TestMeasureHosted(t *testing.T) {
	b, err := bases.Load("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const examples = "{\"text\": \"one\", \"label\": \"a\"}\n{\"text\": \"two\", \"label\": \"b\"}\n"
	for _, at := range []string{filepath.Join(dir, publicFolder), dir} {
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "file.jsonl"), []byte(examples), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := job.Default()
	j.Name, j.Labels = "hosted", []string{"a", "b"}
	for file, measured := range map[string]bool{"file.jsonl": true, "": false} {
		cfg := coordinator.Config{Job: j, Base: b}
		cfg.Job.ValidationFile = file
		if err := measureHosted(&cfg, dir); err != nil || (cfg.Evaluator != nil) != measured {
			t.Errorf("validation_file %q: measured %t, %v", file, cfg.Evaluator != nil, err)
		}
	}
	for _, file := range []string{"../file.jsonl", filepath.Join(dir, "file.jsonl"), "a/../../file.jsonl", "none.jsonl"} {
		cfg := coordinator.Config{Job: j, Base: b}
		cfg.Job.ValidationFile = file
		if err := measureHosted(&cfg, dir); err == nil || !strings.Contains(err.Error(), "validation_file") || cfg.Evaluator != nil {
			t.Errorf("validation_file %q: measured %t, %v", file, cfg.Evaluator != nil, err)
		}
	}
}

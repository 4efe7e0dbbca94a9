package evaluation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/job"
)

// Anyone who submits a job past the command line has it measured on a file in public/, and on no other.
func TestMeasureHosted(t *testing.T) {
	b, err := bases.Load("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const examples = "{\"text\": \"one\", \"label\": \"a\"}\n{\"text\": \"two\", \"label\": \"b\"}\n"
	for _, at := range []string{filepath.Join(dir, bases.PublicFolder), dir} {
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
		if err := MeasureHosted(&cfg, dir); err != nil || (cfg.Evaluator != nil) != measured {
			t.Errorf("validation_file %q: measured %t, %v", file, cfg.Evaluator != nil, err)
		}
	}
	for _, file := range []string{"../file.jsonl", filepath.Join(dir, "file.jsonl"), "a/../../file.jsonl", "none.jsonl"} {
		cfg := coordinator.Config{Job: j, Base: b}
		cfg.Job.ValidationFile = file
		if err := MeasureHosted(&cfg, dir); err == nil || !strings.Contains(err.Error(), "validation_file") || cfg.Evaluator != nil {
			t.Errorf("validation_file %q: measured %t, %v", file, cfg.Evaluator != nil, err)
		}
	}
}

// A job whose validation_file cannot be read is refused when it is submitted, by a word that helps.
func TestCheckHosted(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, bases.PublicFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"good.jsonl": `{"text": "one", "label": "a"}`, "broken.jsonl": `{"text": "one"`, "other.jsonl": `{"text": "one", "label": "c"}`} {
		if err := os.WriteFile(filepath.Join(dir, bases.PublicFolder, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := job.Default()
	j.Name, j.Labels = "hosted", []string{"a", "b"}
	for file, want := range map[string]string{"": "", "good.jsonl": "", "broken.jsonl": "broken.jsonl:1", "other.jsonl": `"c"`,
		"public/good.jsonl": "a path within public/", "../good.jsonl": "from public/"} {
		j.ValidationFile = file
		err := CheckHosted(dir, j)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "validation_file")) {
			t.Errorf("validation_file %q: %v, want %q", file, err, want)
		}
	}
	if j.ValidationFile = "broken.jsonl"; CheckHosted("", j) != nil {
		t.Error("a file of a server elsewhere was looked for")
	}
	j.ValidationFile, j.Enrolment.Secret = "", "a secret of its own, 32 bytes ..."
	if err := CheckHosted(dir, j); err == nil || !strings.Contains(err.Error(), "enrolment.secret") {
		t.Errorf("a secret that the server would not use: %v", err)
	}
	j.Enrolment.Secret, j.Base = "", "/etc"
	if err := CheckHosted(dir, j); err == nil || !strings.Contains(err.Error(), "base is") {
		t.Errorf("a path of the server's machine: %v", err)
	}
}

// What is wrong with a public file is said with the name of who named it.
func TestReadSplitsNamesTheSource(t *testing.T) {
	b, err := bases.Load("")
	if err != nil {
		t.Fatal(err)
	}
	j := job.Default()
	j.Name, j.Labels = "splits", []string{"a", "b"}
	j = j.ForBase(b.Config)
	if _, err := ReadSplits("none.jsonl", "", dataset.Columns{}, j, b); err == nil || !strings.HasPrefix(err.Error(), "--validation: ") {
		t.Errorf("--validation: %v", err)
	}
	if _, err := ReadSplits("", "none.jsonl", dataset.Columns{}, j, b); err == nil || !strings.HasPrefix(err.Error(), "--test: ") {
		t.Errorf("--test: %v", err)
	}
	j.ValidationFile = "none.jsonl"
	if _, err := ReadSplits("", "", dataset.Columns{}, j, b); err == nil || !strings.HasPrefix(err.Error(), "validation_file: ") {
		t.Errorf("validation_file: %v", err)
	}
}

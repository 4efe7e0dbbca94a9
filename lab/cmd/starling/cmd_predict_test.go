package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/predict"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// writeCheckpoint makes a checkpoint of the default base whose head always
// chooses the label at index best.
func writeCheckpoint(t *testing.T, best int) string {
	t.Helper()
	return checkpointOf(t, best, "earn", "grain", "ship")
}

// checkpointOf is writeCheckpoint with other labels.
func checkpointOf(t *testing.T, best int, labels ...string) string {
	t.Helper()
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	lay, err := model.NewLayout(b.Config, model.Method{RMax: 2, Alpha: 2}, len(labels))
	if err != nil {
		t.Fatal(err)
	}
	a := model.NewAdapter(lay, 1)
	v := a.Slice(0)
	v[len(v)-len(labels)+best] = 5 // its bias
	if err := a.SetSlice(0, v); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err = model.WriteCheckpoint(dir, &model.Checkpoint{
		CheckpointInfo: model.CheckpointInfo{Seq: 16, Labels: labels, BestRank: 1}, Base: b, Adapter: a})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func predictWith(t *testing.T, stdin string, args ...string) (out string, code int) {
	t.Helper()
	var stdout bytes.Buffer
	code = run(context.Background(), append([]string{"predict"}, args...), strings.NewReader(stdin), &stdout, io.Discard)
	return stdout.String(), code
}

func TestPredictLabelsEveryLine(t *testing.T) {
	dir := writeCheckpoint(t, 1)
	out, code := predictWith(t, "wheat prices\n\nthird line", "--checkpoint", dir)
	if code != 0 || out != "grain\ngrain\ngrain\n" {
		t.Errorf("exit %d, output %q", code, out)
	}
	file := filepath.Join(t.TempDir(), "lines.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("a line\n", predict.Chunk+3)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, code = predictWith(t, "", "--checkpoint", dir, "--rank", "2", "--json", file)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(rows) != predict.Chunk+3 {
		t.Fatalf("exit %d, %d rows", code, len(rows))
	}
	var last predict.Prediction
	if err := json.Unmarshal([]byte(rows[len(rows)-1]), &last); err != nil {
		t.Fatal(err)
	}
	// softmax of (0, 5, 0) at 5
	if last.Line != predict.Chunk+3 || last.Label != "grain" || last.Probability < 0.986 || last.Probability > 0.987 {
		t.Errorf("last row %+v", last)
	}
	if _, code := predictWith(t, "", "--checkpoint", dir, "--rank", "3"); code != 2 {
		t.Errorf("a rank beyond r_max: exit %d, want 2", code)
	}
}

// What is no text is refused, and what is a table is read as one: a label for
// each of its lines would look right and be wrong.
func TestPredictReadsTheFormat(t *testing.T) {
	checkpoint := writeCheckpoint(t, 2)
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, "one\ntwo\n")
	z.Close()
	for path, lines := range map[string][]int{
		write("a.jsonl", "{\"text\":\"one\"}\n\n{\"text\":\"two\",\"label\":\"earn\"}\n"): {1, 3},
		write("a.csv", "text,id\n\"one\nline\",1\ntwo,2\n"):                               {2, 4},
		write("a.txt.gz", zipped.String()):                                                {1, 2},
	} {
		out, code := predictWith(t, "", "--checkpoint", checkpoint, "--json", path)
		var got []int
		for row := range strings.Lines(out) {
			var p predict.Prediction
			if err := json.Unmarshal([]byte(row), &p); err != nil {
				t.Fatal(err)
			}
			got = append(got, p.Line)
		}
		if code != 0 || !slices.Equal(got, lines) {
			t.Errorf("%s: exit %d, lines %v, want %v", path, code, got, lines)
		}
	}
	for _, path := range []string{
		write("b.jsonl", "plain text\n"), write("b.txt", zipped.String()), write("b.bin", "\x7fELF\x00\x00"), write("b.csv", "body\nx\n"),
	} {
		if out, code := predictWith(t, "", "--checkpoint", checkpoint, path); code != 2 || out != "" {
			t.Errorf("%s: exit %d, output %q", path, code, out)
		}
	}
	out, code := predictWith(t, "", "--checkpoint", checkpoint, "--text-column", "body", filepath.Join(folder, "b.csv"))
	if code != 0 || out != "ship\n" {
		t.Errorf("a chosen column: exit %d, output %q", code, out)
	}
}

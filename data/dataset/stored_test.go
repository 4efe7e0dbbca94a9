//go:build !js

package dataset

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Parquet, Arrow and folders of save_to_disk have the examples of the same table as JSON Lines, classes by their names.
func TestStoredTables(t *testing.T) {
	const data = "../columnar/testdata/"
	dir := t.TempDir()
	for _, p := range [][2]string{{"t0.arrow", "data-0.arrow"}, {"t0-z.arrow", "data-1.arrow"}} {
		raw, err := os.ReadFile(data + p[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p[1]), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	state := `{"_data_files": [{"filename": "data-0.arrow"}, {"filename": "data-1.arrow"}], "_split": "train"}`
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Columns{Unlabelled: true}
	if err := c.Map("text=kind,user=byte"); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(data + "t0.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.ReplaceAll(string(lines), `"kind": null`, `"kind": "none"`)
	_, err = c.Load(data + "t0-0.parquet")
	if err == nil || !strings.Contains(err.Error(), `t0-0.parquet:4: "kind" is null`) {
		t.Errorf("a row without a text: %v", err)
	}
	c.Text = "text"
	want, err := c.Read(strings.NewReader(rows), "t0.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{data + "t0-0.parquet", data + "t0.arrow", data + "t0.feather", dir} {
		set, err := c.Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := len(set.Examples)
		if name == dir {
			if n /= 2; set.Examples[n].Line != 9+want.Examples[0].Line { // of nine rows a file, some have no text
				t.Errorf("the second file begins in row %d, want %d", set.Examples[n].Line, 9+want.Examples[0].Line)
			}
		}
		if got := set.Examples[:n]; !reflect.DeepEqual(got, want.Examples) {
			t.Errorf("%s: %v, want %v", name, got, want.Examples)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(strings.ReplaceAll(state, "data-0", "../data-0")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Load(dir); err == nil || !strings.Contains(err.Error(), "not in the folder") {
		t.Errorf("a file elsewhere: %v", err)
	}
	splits := t.TempDir()
	if err := os.WriteFile(filepath.Join(splits, "dataset_dict.json"), []byte(`{"splits": ["train", "test"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Load(splits); err == nil || !strings.Contains(err.Error(), "splits train, test: give one") {
		t.Errorf("several splits: %v", err)
	}
}

func TestMap(t *testing.T) {
	for list, want := range map[string]string{
		"text=question,label=category":     "text=question,label=category",
		"label=a,b, user=who":              "label=a,b,user=who",
		"prompt=instruction,completion=o,": "completion=o,,prompt=instruction",
		"question=text":                    "question=text",
	} {
		var c Columns
		if err := c.Map(list); err != nil || c.String() != want {
			t.Errorf("%s: %s, %v; want %s", list, c, err, want)
		}
	}
	for list, want := range map[string]string{"": "want NAME=COLUMN", "text": "want NAME=COLUMN", "txet=a": "no name that columns", "text=": "names no column", "user=a,user=b": "twice"} {
		if err := new(Columns).Map(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", list, err, want)
		}
	}
	var c Columns
	if err := c.Map("prompt=ask,completion=say,user=who"); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"a.csv": "who;ask;say\nann;2+2;4\n", "a.jsonl": `{"ask":"2+2","who":"ann","say":"4"}`, "a.tsv": "say\task\twho\n4\t2+2\tann\n"} {
		set, err := c.Read(strings.NewReader(file), name)
		if err != nil || set.Examples[0].Prompt != "2+2" || set.Examples[0].Completion != "4" || set.Examples[0].User != "ann" {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
}

package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What keeps a file from being read is named as it is, in the line where it begins.
func TestRefusalsNameTheCause(t *testing.T) {
	long := strings.Repeat("more\n", MaxLine/4)
	for _, c := range []struct{ name, content, want string }{
		{"a.csv", "text,label\na,x\n\"b,y\nc,x\nd,y\n", "a.csv:3: a quote opens here"},
		{"a.csv", "text,label\na,x\nb,\"y\nc,x\nd,\"y\"\n", "a.csv:3: a quote opens here"},
		{"a.csv", "text,label,note\n\"a\nb\",x,\"c\nd,x,\n", "a.csv:3: a quote opens here"},
		{"a.csv", "text,label\na,x\n\"b" + long, "a.csv:3: longer than"},
		{"a.csv", "text,label\na,x\nb,\"y" + long, "a.csv:3: longer than"},
		{"a.jsonl", `{"text": "a", "label": null}`, `"label" is null`},
		{"a.jsonl", `{"text": null, "label": "x"}`, `"text" is null`},
		{"a.jsonl", `{"text": "a"}`, `"label" is missing`},
		{"a.jsonl", `{"text": "a", "label": ""}`, "label is empty"},
		{"a.jsonl", `{"text": "a", "label": "x"}` + "\n[1]", "a.jsonl:2: not a JSON object: array; want one on each line"},
		{"a.json", "[{\"text\": \"a\", \"label\": \"x\"},\n 7]", "a.json:2: not a JSON object: number"},
		{"a.json", "[{\"text\": \"a\", \"label\": \"x\"},\n {\"text\"", "a.json:2: the list does not end"},
		{"a.json", `[{"text": "a", "label": "x"}`, "the list does not end"},
		{"a.json", `[{"text": "a", "label": "x"}] 7`, "more follows the list"},
		{"a.json", `[{"text": "` + strings.Repeat("x", MaxLine+1<<17), "a record is longer than"},
		{"a.jsonl", "{\"text\": \"caf\xe9\", \"label\": \"x\"}", "Windows-1252"},
		{"a.tsv", "x\tcaf\xe9\n", "Windows-1252"},
		{"a.csv", "sep=;\ntext;label\na;x\n\"b;y\n", "a.csv:4: a quote opens here"},
		{"a.csv", "sep=;\r\ntext;label\r\na;x;y\r\n", "a.csv:3: "},
		{"a.csv", "sep=;\nbody;label\na;x\n", "a.csv:2: \"text\" is missing"},
		{"a.jsonl", `"a"`, "not a JSON object: string; want one on each line"},
		{"a.tsv", "x\t\u200b\n", "a.tsv:1: text is empty"},
		{"a.tsv", "x\t\u200b \ufeff\u00ad\u3164\n", "a.tsv:1: text is empty"},
	} {
		_, err := Read(strings.NewReader(c.content), c.name)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "Go value") || strings.Contains(err.Error(), "is null; there are") {
			t.Errorf("%.60q: %.300v, want %q", c.content, err, c.want)
		}
	}
	if set, err := Read(strings.NewReader("x\ta\u200bb\n"), "a.tsv"); err != nil || set.Examples[0].Text != "a\u200bb" {
		t.Errorf("a text with U+200B: %+v, %v", set, err)
	}
}

// A file whose lines end with CR alone has its lines.
func TestLinesThatEndWithCR(t *testing.T) {
	for name, content := range map[string]string{
		"a.tsv": "x\ta\ry\tb\r", "a.csv": "text,label\ra,x\rb,y\r", "a.jsonl": `{"text":"a","label":"x"}` + "\r" + `{"text":"b","label":"y"}`,
	} {
		set, err := Read(strings.NewReader("\ufeff"+content), name)
		if err != nil || len(set.Examples) != 2 || set.Examples[1].Text != "b" || strings.Join(set.Labels, "") != "xy" {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
	set, err := Read(strings.NewReader("text,label\n\"a\rb\",x\n"), "a.csv")
	if err != nil || set.Examples[0].Text != "a\rb" {
		t.Errorf("a CR within a text: %+v, %v", set, err)
	}
}

// Files of a folder that are no examples are counted; what macOS keeps beside others makes none unusable.
func TestFoldersSayWhatTheyLeaveOut(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cat/1.HEIC", "cat/2.heic", "dog/._1.pgm", "dog/._1.wav", "dog/.DS_Store", "dog/Thumbs.db", "dog/notes"} {
		write(name, []byte("x"))
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "it has 2 ._*, 2 .heic, 1 unnamed files, which are not read") {
		t.Errorf("without examples: %v", err)
	}
	write("cat/3.pgm", []byte("P5 2 2 255\nabcd"))
	set, err := Load(dir)
	if err != nil || len(set.Examples) != 1 || set.Left != "2 ._*, 2 .heic, 1 unnamed" {
		t.Errorf("%+v, %v", set, err)
	}
}

// A device's file whose columns are swapped is told so.
func TestSwappedColumnsAreTold(t *testing.T) {
	set, err := Read(strings.NewReader("where is my card\tlost\n"), "a.tsv")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Relabel([]string{"lost", "late"}); err == nil || !strings.Contains(err.Error(), "swapped") {
		t.Errorf("swapped: %v", err)
	}
	if set, err = Read(strings.NewReader("other\twhere\n"), "a.tsv"); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Relabel([]string{"lost", "late"}); err == nil || strings.Contains(err.Error(), "swapped") {
		t.Errorf("another label: %v", err)
	}
}

// Lists in JSON, Excel's first line and the keys of token classification are read.
func TestDataAsItLiesAbout(t *testing.T) {
	for name, content := range map[string]string{
		"a.json":  "\n [\n {\"text\": \"a\", \"label\": \"x\"},\n\n{\"text\": \"b\", \"label\": \"y\"}\n]\n",
		"b.jsonl": `[{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]`,
		"c.json":  `{"text": "a", "label": "x"}` + "\n" + `{"text": "b", "label": "y"}`,
		"d.csv":   "\ufeffsep=;\r\ntext;label\r\na;x\r\nb;y\r\n",
		"e.csv":   "sep=|\ntext|label\na|x\nb|y\n",
		"f.csv":   "sep=\t\ntext\tlabel\na\tx\nb\ty\n",
	} {
		set, err := Read(strings.NewReader(content), name)
		if err != nil || len(set.Examples) != 2 || set.Examples[1].Text != "b" || strings.Join(set.Labels, "") != "xy" {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
	if set, err := Read(strings.NewReader("[\n{\"text\": \"a\", \"label\": \"x\"},\n{\"text\": \"b\", \"label\": \"y\"}]"), "a.json"); err != nil || set.Examples[1].Line != 3 {
		t.Errorf("a record's line: %+v, %v", set, err)
	}
	set, err := Read(strings.NewReader(`{"tokens": ["Ann", "sings"], "ner_tags": [1, 0]}`), "a.jsonl")
	if err != nil || set.Form() != FormWords || strings.Join(set.Labels, "") != "01" || set.Examples[0].Tags[0] != 1 {
		t.Errorf("tokens: %+v, %v", set, err)
	}
}

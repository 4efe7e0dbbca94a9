package federation

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if z := gzip.NewWriter(&b); strings.HasSuffix(path, ".gz") {
		if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
	} else {
		b.WriteString(text)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func packed(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sets writes a small set of each kind, as the publishers lay theirs out.
func sets(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	c := Config{WikiTables: filepath.Join(dir, "wtq"), TabFact: filepath.Join(dir, "tabfact"), Receipts: filepath.Join(dir, "sroie")}
	tables := map[string]string{}
	var rows strings.Builder
	rows.WriteString("id\tutterance\tcontext\ttargetValue\n")
	for _, n := range []string{"0", "1", "2", "3"} {
		tables["csv/204-csv/"+n+".csv"] = "\"Team\",\"Wins \\\"at home\\\"\"\n\"Rovers\",\"" + n + "\"\n"
		rows.WriteString("nt-" + n + "\twho won?\tcsv/204-csv/" + n + ".csv\tRovers|United\\nCity\n")
		rows.WriteString("nt-1" + n + "\thow often?\tcsv/204-csv/" + n + ".csv\t" + n + "\n")
	}
	write(t, filepath.Join(c.WikiTables, "data", "training.tsv.gz"), rows.String())
	write(t, filepath.Join(c.WikiTables, "data", "random-split-1-dev.tsv"), "id\tutterance\tcontext\ttargetValue\nnt-9\twho?\tcsv/204-csv/0.csv\tRovers\n")
	write(t, filepath.Join(c.WikiTables, "tables_csv.tar.gz"), packed(t, tables))
	write(t, filepath.Join(c.TabFact, "train_examples.json"), `{"a.csv": [["it is so", "it is not"], [1, 0], "a title"], "b.csv": [["so it is"], [0], ""]}`)
	write(t, filepath.Join(c.TabFact, "small_test_examples.json"), `{"a.csv": [["is it"], [1], "a title"]}`)
	write(t, filepath.Join(c.TabFact, "data", "all_csv", "a.csv"), "player#no\nquincy acy#4\n")
	write(t, filepath.Join(c.TabFact, "data", "all_csv", "b.csv"), "x#y\n1#2\n")
	var receipts strings.Builder
	for range 10 {
		receipts.WriteString(`{"width": 100, "height": 200, "provider": "BOOKS", "fields": {"total": "9.00", "date": ""}, "lines": [{"text": "TOTAL 9.00", "box": [0, 0, 100, 20]}]}` + "\n")
	}
	write(t, filepath.Join(c.Receipts, "receipts_dev.jsonl.gz"), receipts.String())
	return c
}

func TestFederation(t *testing.T) {
	c := sets(t)
	c.Clients = [3]int{2, 1, 3}
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"wtq-1", "wtq-2", "tabfact-1", "sroie-1", "sroie-2", "sroie-3"}; !slices.Equal(f.Names, want) {
		t.Errorf("clients %v, want %v", f.Names, want)
	}
	counts, taken := []int{}, map[int]bool{}
	for k, mine := range f.Clients {
		counts = append(counts, len(mine))
		for _, at := range mine {
			if taken[at] {
				t.Errorf("question %d has two clients", at)
			}
			taken[at] = true
			if e := f.Train.Examples[at]; e.User != f.Names[k] || !strings.HasPrefix(f.Names[k], e.Source) {
				t.Errorf("%s holds a question of %s and %s", f.Names[k], e.User, e.Source)
			}
		}
	}
	// Four tables of two questions, two of three, and eight receipts of ten, of one field.
	if want := []int{4, 4, 3, 2, 3, 3}; !slices.Equal(counts, want) || len(f.Train.Examples) != 19 {
		t.Errorf("questions of clients %v of %d, want %v", counts, len(f.Train.Examples), want)
	}
	test := map[string]int{}
	for _, e := range f.Test.Examples {
		test[e.Source]++
	}
	if want := map[string]int{"wtq": 1, "tabfact": 1, "sroie": 2}; !reflect.DeepEqual(test, want) {
		t.Errorf("test questions %v, want %v", test, want)
	}
	again, err := New(c)
	if err != nil || !reflect.DeepEqual(f, again) {
		t.Errorf("one seed dealt two ways, %v", err)
	}
}

// A table's cells are on a grid: the place of each word follows from its row, column and
// letters.
func TestTablesAsPages(t *testing.T) {
	c := sets(t)
	s, err := readWikiTables(c.WikiTables)
	if err != nil {
		t.Fatal(err)
	}
	d := s.train[3]
	if want := []string{"Team", "Wins", `"at`, `home"`, "Rovers", "3"}; !slices.Equal(d.words, want) {
		t.Errorf("words %q, want %q", d.words, want)
	}
	// 'Wins "at home"' has 14 letters in a cell that is 500 wide.
	if want := [][4]uint16{{0, 0, 500, 500}, {500, 0, 642, 500}, {678, 0, 785, 500}, {821, 0, 1000, 500}, {0, 500, 500, 1000}, {500, 500, 1000, 1000}}; !reflect.DeepEqual(d.boxes, want) {
		t.Errorf("boxes %v, want %v", d.boxes, want)
	}
	if want := []question{{"who won?", []string{"Rovers, United City"}}, {"how often?", []string{"3"}}}; !reflect.DeepEqual(d.questions, want) {
		t.Errorf("questions %v, want %v", d.questions, want)
	}
	if s, err = readTabFact(c.TabFact); err != nil {
		t.Fatal(err)
	}
	if d = s.train[0]; d.words[0] != "a" || d.boxes[0] != [4]uint16{0, 0, 142, 333} || d.boxes[1][2] != 1000 {
		t.Errorf("%q at %v: the title stands above the table", d.words, d.boxes)
	}
	if want := []question{{"it is so", []string{"yes"}}, {"it is not", []string{"no"}}}; !reflect.DeepEqual(d.questions, want) {
		t.Errorf("statements %v, want %v", d.questions, want)
	}
}

func TestRefusals(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no set":                   func(c *Config) { *c = Config{} },
		"clients of none":          func(c *Config) { c.TabFact = "" },
		"a set of none":            func(c *Config) { c.Clients[0] = 0 },
		"more than it has":         func(c *Config) { c.Clients[1] = 3 },
		"less than nothing":        func(c *Config) { c.Clients[1] = -1 },
		"generated beside folders": func(c *Config) { c.Generated = 5 },
		"generated without end":    func(c *Config) { *c = Config{Generated: 1 << 30, Clients: [3]int{1, 1, 1}} },
		"no folder":                func(c *Config) { c.WikiTables = filepath.Join(c.WikiTables, "elsewhere") },
		"a table that is not there": func(c *Config) {
			write(t, filepath.Join(c.TabFact, "train_examples.json"), `{"c.csv": [["x"], [1], ""]}`)
		},
		"a table elsewhere": func(c *Config) {
			write(t, filepath.Join(c.TabFact, "train_examples.json"), `{"../../etc/passwd": [["x"], [1], ""]}`)
		},
		"a label of neither": func(c *Config) {
			write(t, filepath.Join(c.TabFact, "train_examples.json"), `{"a.csv": [["x"], [2], ""]}`)
		},
		"labels for others": func(c *Config) {
			write(t, filepath.Join(c.TabFact, "train_examples.json"), `{"a.csv": [["x"], [1, 0], ""]}`)
		},
		"columns": func(c *Config) {
			write(t, filepath.Join(c.WikiTables, "data", "training.tsv"), "nt-1\twho\n")
			if err := os.Remove(filepath.Join(c.WikiTables, "data", "training.tsv.gz")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := sets(t)
			c.Clients = [3]int{1, 1, 1}
			change(&c)
			if _, err := New(c); !errors.Is(err, ErrConfig) {
				t.Errorf("%v", err)
			}
		})
	}
}

// FuzzTable: no table is laid out beyond its page, or takes more than its bytes.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\"a\",\"b\"\n1,2\n"))
	f.Add([]byte("\"a \\\"b\\\"\",,\n\n\"c"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := readTable(text, ',')
		if err != nil {
			return
		}
		words, boxes := layOut("a title", rows)
		if len(words) != len(boxes) || len(words) > len(text)+2 {
			t.Fatalf("%d words and %d boxes of %d bytes", len(words), len(boxes), len(text))
		}
		for _, b := range boxes {
			if b[0] > b[2] || b[1] > b[3] || b[2] > dataset.PageSide || b[3] > dataset.PageSide {
				t.Fatalf("box %v", b)
			}
		}
	})
}

// Generated tables say what their questions ask for: anyone who looks the cell up by its places
// finds the answer, and statements are true where they are answered so. Names of public
// documents are of none of them.
func TestGeneratedSets(t *testing.T) {
	c := Config{Generated: 80, Clients: [3]int{2, 1, 1}, Seed: 3}
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := New(c)
	if err != nil || !reflect.DeepEqual(f, again) {
		t.Errorf("one seed made two federations, %v", err)
	}
	names, answers := map[string]bool{}, map[string]int{}
	for _, e := range append(f.Train.Examples, f.Test.Examples...) {
		if e.Source == Invoices {
			continue
		}
		// The column is the head that the question says, the row the name.
		column, row, said := uint16(0), uint16(0), strings.Fields(strings.TrimSuffix(e.Question, "?"))
		for i, w := range e.Words {
			if e.Boxes[i][1] == 0 && e.Boxes[i][0] > 0 && slices.Contains(said, w) {
				column = e.Boxes[i][0]
			}
			if e.Boxes[i][0] == 0 && e.Boxes[i][1] > 0 {
				names[w] = true
				if slices.Contains(said, w) {
					row = e.Boxes[i][1]
				}
			}
		}
		cell := ""
		for i, w := range e.Words {
			if e.Boxes[i][0] == column && e.Boxes[i][1] == row {
				cell = w
			}
		}
		want := cell
		if e.Source == Statements {
			want = map[bool]string{true: "yes", false: "no"}[slices.Contains(said, cell)]
			answers[want]++
		}
		if column == 0 || row == 0 || e.Answers[0] != want {
			t.Errorf("%q of %q is %q, want %q", e.Question, e.Words, e.Answers[0], want)
		}
	}
	if n := answers["yes"] + answers["no"]; n != 3*(80+20) || min(answers["yes"], answers["no"]) < n/3 { // errs once in 10^8
		t.Errorf("statements %v", answers)
	}
	kinds := map[string]int{}
	for e := range Public(1) {
		kinds[e.Source]++
		for i, w := range e.Words {
			if e.Source == Tables && e.Boxes[i][0] == 0 && e.Boxes[i][1] > 0 && names[w] {
				t.Errorf("%s is public", w)
			}
		}
		if kinds[e.Source] == 100 && e.Source == Statements {
			break
		}
	}
	if kinds[Tables] != 100 || kinds[""] != 100 {
		t.Errorf("public documents %v", kinds)
	}
}

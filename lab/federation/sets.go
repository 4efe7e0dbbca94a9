package federation

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// Names of the sets: [dataset.Example.Source] of their questions.
const (
	WikiTables = "wtq"
	TabFact    = "tabfact"
	Receipts   = "sroie"
)

// A document is a page with questions about it.
type document struct {
	source    string
	provider  string
	words     []string
	boxes     [][4]uint16
	image     *dataset.Image // nil where none is wanted
	questions []question
}

type question struct {
	text    string
	answers []string
}

// set is a set's documents: those that are learnt from, and those that are scored.
type set struct{ train, test []document }

// readWikiTables reads WikiTableQuestions from its folder: data/training.tsv and
// data/random-split-1-dev.tsv, plain or .gz, and the tables in csv/ or tables_csv.tar.gz.
// The answer is the target's values, separated by ", ".
func readWikiTables(folder string) (s set, err error) {
	t := &tables{folder: folder, archive: filepath.Join(folder, "tables_csv.tar.gz")}
	if s.train, err = wikiTables(filepath.Join(folder, "data", "training.tsv"), t); err != nil {
		return s, err
	}
	s.test, err = wikiTables(filepath.Join(folder, "data", "random-split-1-dev.tsv"), t)
	return s, err
}

func wikiTables(name string, t *tables) ([]document, error) {
	f, err := openGz(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unescape := strings.NewReplacer(`\n`, " ", `\p`, "|", `\\`, `\`)
	asked := map[string][]question{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		col := strings.Split(lines.Text(), "\t")
		switch {
		case len(col) != 4:
			return nil, fmt.Errorf("%s, line %d: %d columns, want id, utterance, context and targetValue", name, n, len(col))
		case n == 1 && col[0] == "id":
			continue
		}
		values := strings.Split(col[3], "|")
		for i, v := range values {
			values[i] = strings.TrimSpace(unescape.Replace(v))
		}
		asked[col[2]] = append(asked[col[2]], question{unescape.Replace(col[1]), []string{strings.Join(values, ", ")}})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return pages(WikiTables, asked, nil, t, ',')
}

// readTabFact reads TabFact from its folder: train_examples.json and
// small_test_examples.json, objects of tables' names to [statements, labels, caption], and
// the tables in data/all_csv or tables_csv.tar.gz. A statement is asked, and answered "yes"
// or "no".
func readTabFact(folder string) (s set, err error) {
	t := &tables{folder: filepath.Join(folder, "data", "all_csv"), archive: filepath.Join(folder, "tables_csv.tar.gz")}
	if s.train, err = statements(filepath.Join(folder, "train_examples.json"), t); err != nil {
		return s, err
	}
	s.test, err = statements(filepath.Join(folder, "small_test_examples.json"), t)
	return s, err
}

func statements(name string, t *tables) ([]document, error) {
	f, err := openGz(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all map[string][3]json.RawMessage
	if err := json.NewDecoder(f).Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: want an object of tables, each [statements, labels, caption]: %w", name, err)
	}
	asked, captions := map[string][]question{}, map[string]string{}
	for table, parts := range all {
		var said []string
		var holds []int
		var caption string
		if err := errors.Join(json.Unmarshal(parts[0], &said), json.Unmarshal(parts[1], &holds), json.Unmarshal(parts[2], &caption)); err != nil {
			return nil, fmt.Errorf("%s: table %.80q: %w", name, table, err)
		}
		if len(said) != len(holds) {
			return nil, fmt.Errorf("%s: table %.80q has %d statements and %d labels", name, table, len(said), len(holds))
		}
		captions[table] = caption
		for i, text := range said {
			answer := map[int]string{0: "no", 1: "yes"}[holds[i]]
			if answer == "" {
				return nil, fmt.Errorf("%s: table %.80q: label %d is %d, want 0 or 1", name, table, i+1, holds[i])
			}
			asked[table] = append(asked[table], question{text, []string{answer}})
		}
	}
	return pages(TabFact, asked, captions, t, '#')
}

// pages lays the tables out that are asked about, in the order of their names.
func pages(source string, asked map[string][]question, captions map[string]string, t *tables, sep rune) ([]document, error) {
	var all []document
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		text, err := t.read(name)
		if err != nil {
			return nil, err
		}
		rows, err := readTable(text, sep)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
		d := document{source: source, questions: asked[name]}
		if d.words, d.boxes = layOut(captions[name], rows); len(d.words) == 0 {
			return nil, fmt.Errorf("table %s is empty", name)
		}
		all = append(all, d)
	}
	return all, nil
}

// readReceipts reads SROIE's receipts from a file of JSON Lines that [dataset.Questions]
// reads, or a folder with receipts_dev.jsonl.gz, and keeps every fifth for the score, there
// being no other.
func readReceipts(name string) (s set, err error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "receipts_dev.jsonl.gz")
	}
	f, err := named.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%w: want a file of receipts, or a folder with receipts_dev.jsonl.gz", err)
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	var all []document
	line := 0
	err = dataset.Questions(f, name, func(e dataset.Example) error {
		if len(e.Answers) == 0 {
			return nil
		}
		if e.Line != line {
			line = e.Line
			all = append(all, document{source: Receipts, provider: e.Provider, words: e.Words, boxes: e.Boxes})
		}
		d := &all[len(all)-1]
		d.questions = append(d.questions, question{e.Question, e.Answers})
		return nil
	})
	for i, d := range all {
		if i%5 == 4 {
			s.test = append(s.test, d)
		} else {
			s.train = append(s.train, d)
		}
	}
	return s, err
}

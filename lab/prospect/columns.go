package prospect

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/fleetdata"
)

// Names of columns that are taken at once, the likelier first.
var (
	labelNames = []string{"label", "labels", "category", "class", "intent", "target", "topic", "sentiment", "tag", "y"}
	textNames  = []string{"text", "sentence", "content", "body", "message", "description", "utterance", "query", "question", "review", "title"}
)

// Load reads a data file, and finds its columns where given names none and "text" and "label" are not there. It
// refuses labels of which nothing can be learnt.
func Load(path string, given dataset.Columns) (*dataset.Set, dataset.Columns, error) {
	set, err := load(path, given)
	if err == nil && !headed(path, set) || given != (dataset.Columns{}) {
		return set, given, err
	}
	if found, ok := find(path); ok {
		set, e := load(path, found)
		if e == nil {
			return set, found, nil
		}
		if err != nil {
			err = e // of what the columns hold, not that they have other names
		}
	}
	return set, given, err
}

// headed reports whether a file that was read as lines label<TAB>text begins with the names of its columns: a label
// that no other line has, where all others come again.
func headed(path string, set *dataset.Set) bool {
	if filepath.Ext(strings.TrimSuffix(path, ".gz")) != ".tsv" || len(set.Labels) < 3 {
		return false
	}
	times := make([]int, len(set.Labels))
	for _, e := range set.Examples {
		times[e.Label]++
	}
	first := set.Examples[0].Label
	rare := 0
	for _, n := range times {
		if n < 2 {
			rare++
		}
	}
	return times[first] == 1 && rare == 1
}

func load(path string, c dataset.Columns) (*dataset.Set, error) {
	set, err := c.Load(path)
	if err == nil && len(set.Labels) > 0 {
		err = fleetdata.CheckLabels(path, set)
	}
	return set, err
}

// column is what a sample of a table has in one of its columns.
type column struct {
	name     string
	values   map[string]int
	n, bytes int
}

func (c *column) add(value string) {
	if value = strings.TrimSpace(value); value == "" {
		return
	}
	c.values[value]++
	c.n++
	c.bytes += len(value)
}

func (c *column) mean() float64 { return float64(c.bytes) / float64(max(1, c.n)) }

// sampled is how many records are looked at.
const sampled = 2000

// find chooses the columns of texts and labels by their names, else by what they hold: labels are few and come again
// and again, texts are long.
func find(path string) (dataset.Columns, bool) {
	columns := sample(path)
	var label, text *column
	for _, c := range columns {
		few := len(c.values) >= 2 && 2*len(c.values) <= c.n && c.mean() <= 60
		if few && (label == nil || before(c, label, labelNames, func(c *column) float64 { return float64(len(c.values)) })) {
			label = c
		}
	}
	for _, c := range columns {
		if c != label && c.n > 0 && (text == nil || before(c, text, textNames, func(c *column) float64 { return -c.mean() })) {
			text = c
		}
	}
	if label == nil || text == nil {
		return dataset.Columns{}, false
	}
	return dataset.Columns{Text: text.name, Label: label.name}, true
}

// before reports whether a is chosen rather than b: the likelier name, else the smaller measure.
func before(a, b *column, names []string, measure func(*column) float64) bool {
	place := func(c *column) int {
		if i := slices.Index(names, strings.ToLower(c.name)); i >= 0 {
			return i
		}
		return len(names)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(measure(a), measure(b))) < 0
}

// sample reads the first records of a table or of JSON Lines; nil where it can make nothing of them.
func sample(path string) []*column {
	in, err := unpacked(path)
	if err != nil {
		return nil
	}
	defer in.Close()
	var list []*column
	at := map[string]*column{}
	add := func(name, value string) {
		if at[name] == nil {
			at[name] = &column{name: name, values: map[string]int{}}
			list = append(list, at[name])
		}
		at[name].add(value)
	}
	switch filepath.Ext(strings.TrimSuffix(path, ".gz")) {
	case ".jsonl", ".ndjson":
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 1<<20)
		for n := 0; n < sampled && lines.Scan(); n++ {
			var record map[string]any
			if json.Unmarshal(lines.Bytes(), &record) != nil {
				return nil
			}
			names := make([]string, 0, len(record))
			for name := range record {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				if text, ok := record[name].(string); ok {
					add(name, text)
				}
			}
		}
	case ".csv", ".tsv":
		buffered := bufio.NewReaderSize(in, 64<<10)
		head, _ := buffered.Peek(4096)
		first, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), []byte("\n"))
		if _, err := buffered.Discard(len(head) - len(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))); err != nil {
			return nil
		}
		rows := csv.NewReader(buffered)
		rows.LazyQuotes, rows.Comma = true, ','
		for _, sep := range "\t;" {
			if bytes.Count(first, []byte(string(sep))) > bytes.Count(first, []byte(string(rows.Comma))) {
				rows.Comma = sep
			}
		}
		names, err := rows.Read()
		for n := 0; n < sampled && err == nil; n++ {
			var row []string
			if row, err = rows.Read(); err == nil {
				for i, value := range row {
					add(strings.TrimSpace(names[i]), value)
				}
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil
		}
	}
	return list
}

// unpacked opens a file, through gzip where its name says so.
func unpacked(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

// Describe says which columns were found, and by which flags devices read theirs likewise; "" where they need none.
func Describe(c dataset.Columns) string {
	if c.Text == "" && c.Label == "" {
		return ""
	}
	return fmt.Sprintf("--map %q", "text="+cmp.Or(c.Text, "text")+",label="+cmp.Or(c.Label, "label"))
}

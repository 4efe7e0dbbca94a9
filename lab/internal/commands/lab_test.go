package commands

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/lab/federation"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/model/evaluate"
	"github.com/starling-fl/starling/model/evaluate/answer"
)

// A simulation's data may be a folder of images, a folder for each label; a run over it
// is known by every image of it.
func TestLabReadsAFolderOfImages(t *testing.T) {
	dir := t.TempDir()
	write := func(label string, i int, shade byte) {
		t.Helper()
		path := filepath.Join(dir, label, fmt.Sprintf("%02d.pgm", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		pixels := bytes.Repeat([]byte{shade}, 16)
		if err := os.WriteFile(path, append([]byte("P5 4 4 255\n"), pixels...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		write("dark", i, byte(i))
		write("light", i, byte(200+i))
	}
	read := func() string {
		t.Helper()
		d, err := new(labData).get(sweep.Source{Path: dir, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(d.Train.Examples) + len(d.Validation.Examples) + len(d.Test.Examples); n != 80 || len(d.Labels) != 2 {
			t.Errorf("%d examples of the labels %q", n, d.Labels)
		}
		return d.SHA256
	}
	before := read()
	if again := read(); again != before {
		t.Error("the same folder is another")
	}
	write("dark", 7, 99)
	if read() == before {
		t.Error("a folder of which an image has changed is the same")
	}
}

// A grid reads its file once, whatever seeds it is divided by, and what it reads goes by
// its own name.
func TestLabReadsAFileOnce(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "texts.tsv"), filepath.Join(dir, "link.tsv")
	var text []byte
	for i := range 100 {
		text = fmt.Appendf(text, "label%d\ttext %d\n", i%3, i)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	var l labData
	one, err := l.get(sweep.Source{Path: path, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	linked, err := l.get(sweep.Source{Path: link, Seed: 1})
	if err != nil || linked.Name != one.Name || linked.SHA256 != one.SHA256 || !reflect.DeepEqual(linked.Train.Examples, one.Train.Examples) {
		t.Errorf("by a link it is %+v, %v", linked, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	two, err := l.get(sweep.Source{Path: path, Seed: 2})
	if err != nil {
		t.Fatalf("read again: %v", err)
	}
	if two.SHA256 != one.SHA256 || len(two.Train.Examples) != len(one.Train.Examples) || reflect.DeepEqual(two.Train.Examples, one.Train.Examples) {
		t.Error("another seed divides it as the first did")
	}
	if again, err := l.get(sweep.Source{Path: path, Seed: 1}); err != nil || again != one {
		t.Errorf("divided again: %v", err)
	}
}

// Other columns of a file are other data; a run over them is not one that was made.
func TestLabKnowsColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "texts.csv")
	text := []byte("text,label,topic\n")
	for i := range 60 {
		text = fmt.Appendf(text, "text %d,%d,%d\n", i, i%2, i%3)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]dataset.Columns{}
	for _, c := range []dataset.Columns{{}, {Label: "topic"}, {Text: "topic"}} {
		l := labData{columns: c}
		d, err := l.get(sweep.Source{Path: path, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[d.SHA256]; ok {
			t.Errorf("%+v is the same as %+v", c, other)
		}
		seen[d.SHA256] = c
	}
}

// TabFact counts by its accuracy in the mean over the sets, where an answer that is nearly right
// is wrong; other sets by ANLS.
func TestSetsCountByTheirOwnMetric(t *testing.T) {
	q := &evaluate.Questions{}
	for _, source := range []string{federation.TabFact, federation.TabFact, federation.WikiTables} {
		q.Examples = append(q.Examples, dataset.Example{Source: source})
		q.Truths = append(q.Truths, []string{"yes"})
	}
	got := answerScore(q.Judge([]answer.Reply{{Text: "yes"}, {Text: "ye"}, {Text: "ye"}}))
	if got.Sources[federation.TabFact] != 0.5 || math.Abs(got.Sources[federation.WikiTables]-2.0/3) > 1e-12 || math.Abs(got.ANLS-(0.5+2.0/3)/2) > 1e-12 {
		t.Errorf("%+v", got)
	}
	q.Examples, q.Truths = q.Examples[2:], q.Truths[2:]
	if got := answerScore(q.Judge([]answer.Reply{{Text: "ye"}})); got.Sources != nil || math.Abs(got.ANLS-2.0/3) > 1e-12 {
		t.Errorf("one set: %+v", got)
	}
}

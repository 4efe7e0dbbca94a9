package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

func texts(n, classes int) *dataset.Set {
	s := &dataset.Set{Name: "texts.csv"}
	for c := range classes {
		s.Labels = append(s.Labels, string(rune('a'+c)))
	}
	for i := range n {
		s.Examples = append(s.Examples, dataset.Example{Text: fmt.Sprint("text ", i), Label: i % classes, Line: 100 + i})
	}
	return s
}

// What a partition gives to nobody is held out, and each client has what its list says.
func TestPartitionLeavesExamplesOut(t *testing.T) {
	all := texts(40, 2)
	clients := [][]int{{5, 3}, {}, {7, 8, 9}}
	d, err := Source{Seed: 1}.Divide(all, nil, clients)
	ok(t, err)
	if len(d.Train.Examples) != 5 || len(d.Validation.Examples)+len(d.Test.Examples) != 35 || len(d.Validation.Examples) < 16 {
		t.Errorf("%d, %d and %d examples", len(d.Train.Examples), len(d.Validation.Examples), len(d.Test.Examples))
	}
	if len(d.Clients) != 3 {
		t.Fatalf("clients %v", d.Clients)
	}
	for k, part := range d.Clients {
		for j, at := range part {
			if got, want := d.Train.Examples[at], all.Examples[clients[k][j]]; got.Text != want.Text || got.Line != want.Line {
				t.Errorf("client %d has %q, want %q", k, got.Text, want.Text)
			}
		}
	}
	s := DefaultSettings()
	parts, how, err := d.Divide(s)
	if err != nil || !slices.EqualFunc(parts, d.Clients, slices.Equal[[]int]) || !strings.Contains(how, "by partition") {
		t.Errorf("%v, %q, %v", parts, how, err)
	}
	s.Population = 2
	if _, _, err := d.Divide(s); err == nil || !strings.Contains(err.Error(), "population is 2, and the partition has 3 clients") {
		t.Errorf("a population that is too small: %v", err)
	}
}

// Where clients have all of a file, others than those that train are held out whole.
func TestPartitionOfEverything(t *testing.T) {
	all := texts(300, 3)
	clients := make([][]int, 30)
	for i := range 300 {
		clients[i*7%30] = append(clients[i*7%30], i)
	}
	d, err := Source{Seed: 2}.Divide(all, nil, clients)
	ok(t, err)
	if len(d.Clients) >= 30 || len(d.Clients) < 15 || len(d.Validation.Examples) == 0 {
		t.Fatalf("%d clients, %d validate", len(d.Clients), len(d.Validation.Examples))
	}
	sum := 0
	for _, p := range d.Clients {
		if len(p) != 10 {
			t.Errorf("a client has %d of its 10 examples", len(p))
		}
		sum += len(p)
	}
	if sum != len(d.Train.Examples) {
		t.Errorf("%d of %d examples are somebody's", sum, len(d.Train.Examples))
	}
}

// A test file is the whole test part, under the first file's labels; and rare classes go
// from all parts and from clients.
func TestTestFileAndRareClasses(t *testing.T) {
	all, test := texts(100, 2), texts(9, 3)
	if _, err := (Source{}).Divide(all, test, nil); err == nil || !strings.Contains(err.Error(), `label "c" is not one of`) {
		t.Errorf("a label that is not trained on: %v", err)
	}
	test = texts(9, 2)
	d, err := Source{Seed: 1}.Divide(all, test, nil)
	ok(t, err)
	if len(d.Test.Examples) != 9 || len(d.Validation.Examples) != 10 || len(d.Train.Examples) != 90 || d.Test.Examples[4].Line != 104 {
		t.Errorf("%d, %d and %d examples", len(d.Train.Examples), len(d.Validation.Examples), len(d.Test.Examples))
	}
	all = texts(100, 2)
	all.Labels = append(all.Labels, "rare")
	all.Examples[0].Label, all.Examples[50].Label = 2, 2
	d, err = Source{Seed: 1, MinPerClass: 3}.Divide(all, nil, [][]int{{0, 1, 2}, {50}, {3}})
	ok(t, err)
	if len(d.Labels) != 2 || len(d.Train.Examples) != 3 || len(d.Clients) != 3 || len(d.Clients[0]) != 2 || len(d.Clients[1]) != 0 {
		t.Errorf("labels %q, clients %v", d.Labels, d.Clients)
	}
	if all.Examples[0].Label != 2 || all.Examples[1].Line != 101 {
		t.Error("the file's own examples were changed")
	}
	if _, err := (Source{MinPerClass: 60}).Divide(all, nil, nil); err == nil || !strings.Contains(err.Error(), "min_per_class is 60") {
		t.Errorf("no class has as many: %v", err)
	}
	s := DefaultSettings()
	s.MinPerClass = 5
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "data names none") {
		t.Errorf("classes of no file: %v", err)
	}
	if _, err := (Source{}).Divide(texts(10, 2), nil, [][]int{{0, 1, 2, 3, 4, 5, 6, 7, 8}}); err == nil || !strings.Contains(err.Error(), "none is left to") {
		t.Errorf("one example is left for two parts: %v", err)
	}
}

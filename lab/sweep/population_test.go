package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

// Shuffled clients keep their sizes and, all together, their examples; those with too few
// are left out; and each way of dividing has a name of its own.
func TestDivisions(t *testing.T) {
	set := &dataset.Set{Labels: []string{"a", "b"}}
	for i := range 60 {
		set.Examples = append(set.Examples, dataset.Example{Text: fmt.Sprint(i), Label: i / 30, User: fmt.Sprint("user ", i*i/400)})
	}
	d := &Data{Name: "x", SHA256: "00", Labels: set.Labels, Train: set}
	names := map[string]bool{}
	divide := func(s Settings) [][]int {
		t.Helper()
		parts, how, err := d.Divide(s)
		if err != nil {
			t.Fatal(err)
		}
		if names[how] {
			t.Errorf("two divisions are called %q", how)
		}
		names[how] = true
		return parts
	}
	s := DefaultSettings()
	plain := divide(s)
	s.IID = true
	mixed := divide(s)
	sizes := func(parts [][]int) (n []int) {
		for _, p := range parts {
			n = append(n, len(p))
		}
		return n
	}
	all := func(parts [][]int) []int { return slices.Sorted(slices.Values(slices.Concat(parts...))) }
	if !slices.Equal(sizes(plain), sizes(mixed)) || !slices.Equal(all(plain), all(mixed)) || slices.Equal(slices.Concat(plain...), slices.Concat(mixed...)) {
		t.Errorf("%v became %v", plain, mixed)
	}
	if again, _, err := d.Divide(s); err != nil || !slices.Equal(slices.Concat(again...), slices.Concat(mixed...)) {
		t.Error("the same settings, another division")
	}
	counts := Counts(set, plain)
	for j, p := range plain {
		if counts[0][j]+counts[1][j] != len(p) {
			t.Errorf("client %d has %d examples, counted %d and %d", j, len(p), counts[0][j], counts[1][j])
		}
	}
	s.IID, s.MinExamples = false, 5
	few := divide(s)
	if len(few) >= len(plain) || len(few) == 0 || slices.Min(sizes(few)) < 5 {
		t.Errorf("sizes %v of %v", sizes(few), sizes(plain))
	}
	s.MinExamples, s.Pooled = 0, true
	if one := divide(s); len(one) != 1 || !slices.Equal(all(one), all(plain)) {
		t.Errorf("%d clients hold %d of %d examples", len(one), len(one[0]), len(set.Examples))
	}
	s.MinExamples, s.Pooled = 1000, false
	if _, _, err := d.Divide(s); err == nil || !strings.Contains(err.Error(), "min_examples") {
		t.Errorf("nobody has enough: %v", err)
	}
	s.MinExamples, s.Dropout = 0, 1
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "dropout") {
		t.Errorf("all drop out: %v", err)
	}
}

// A run says how many clients hold how much, and which users none of them is.
func TestSpreadIsCounted(t *testing.T) {
	all := &dataset.Set{Labels: []string{"a", "b"}}
	for u := range 30 {
		for i := range map[bool]int{true: 200, false: 4}[u == 0] {
			all.Examples = append(all.Examples, dataset.Example{Text: "t", Label: i % 2, User: fmt.Sprint(u)})
		}
	}
	d, err := Source{Seed: 1}.Divide(all, nil, nil)
	ok(t, err)
	s := DefaultSettings()
	s.Population = 60
	parts, _, err := d.Divide(s)
	ok(t, err)
	got := d.Spread(parts, s.Population)
	if got.Clients+got.HeldOut != 30 || got.Clients < 18 || got.Reused != 60/float64(got.Clients) ||
		got.Largest < 200/float64(got.Examples)-1e-9 || got.Largest > 200/float64(got.Examples)+1e-9 {
		t.Errorf("%+v: %s", got, got)
	}
}

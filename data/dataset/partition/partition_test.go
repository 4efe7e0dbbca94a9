package partition

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/realdata"
)

func labelled100(labels int) *dataset.Set {
	s := &dataset.Set{}
	for l := range labels {
		s.Labels = append(s.Labels, fmt.Sprint(l))
		for i := range 100 {
			s.Examples = append(s.Examples, dataset.Example{Text: fmt.Sprint(i), Label: l, User: fmt.Sprint("u", i%17)})
		}
	}
	return s
}

func TestDirichletIsAPartition(t *testing.T) {
	s := labelled100(8)
	for _, alpha := range []float64{0.01, 0.1, 1, 1000} {
		parts, err := Dirichlet(s, 20, alpha, 3)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Dirichlet(s, 20, alpha, 3)
		if !reflect.DeepEqual(parts, again) {
			t.Errorf("alpha %v: the seed does not decide", alpha)
		}
		all := slices.Concat(parts...)
		slices.Sort(all)
		if len(all) != len(s.Examples) || len(slices.Compact(all)) != len(s.Examples) {
			t.Errorf("alpha %v: not every example has exactly one client", alpha)
		}
		// The share of a client's commonest label says how skewed clients are.
		skew, n := 0.0, 0
		for _, part := range parts {
			count := make([]int, 8)
			for _, i := range part {
				count[s.Examples[i].Label]++
			}
			if len(part) > 0 {
				skew += float64(slices.Max(count)) / float64(len(part))
				n++
			}
		}
		skew /= float64(n)
		if alpha == 1000 && skew > 0.25 || alpha == 0.01 && skew < 0.7 {
			t.Errorf("alpha %v: the commonest label holds %.2f of a client", alpha, skew)
		}
	}
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := Dirichlet(s, 20, bad, 3); err == nil {
			t.Errorf("alpha %v was accepted", bad)
		}
	}
}

func TestByUserKeepsUsersWhole(t *testing.T) {
	s := labelled100(4)
	parts, err := ByUser(s, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]int{}
	total := 0
	for c, part := range parts {
		total += len(part)
		for _, i := range part {
			if other, seen := owner[s.Examples[i].User]; seen && other != c {
				t.Fatalf("user %s has two clients", s.Examples[i].User)
			}
			owner[s.Examples[i].User] = c
		}
	}
	if total != len(s.Examples) || len(owner) != 17 {
		t.Errorf("%d examples of %d users", total, len(owner))
	}
	if _, err := ByUser(&dataset.Set{Labels: []string{"a"}, Examples: []dataset.Example{{}}}, 2, 1); err == nil {
		t.Error("an example without a user was accepted")
	}
}

func TestSplitIsStratified(t *testing.T) {
	parts, err := Split(labelled100(3), 9, 0.7, 0.1, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{70, 10, 20} {
		count := make([]int, 3)
		for _, ex := range parts[i].Examples {
			count[ex.Label]++
		}
		if !slices.Equal(count, []int{want, want, want}) {
			t.Errorf("part %d has %v of each label, want %d", i, count, want)
		}
	}
	if _, err := Split(labelled100(3), 9, 0.7, 0.4); err == nil {
		t.Error("more than the whole was accepted")
	}
}

// The natural split of news: each of its users is one client, with all of its posts.
func TestNewsByUser(t *testing.T) {
	s, err := dataset.Load(realdata.Path(t, "news20_users/posts.jsonl.gz"))
	if err != nil || len(s.Examples) != 2492 || len(s.Labels) != 20 {
		t.Fatalf("%d posts, %v", len(s.Examples), err)
	}
	parts, err := ByUser(s, 122, 1)
	if err != nil {
		t.Fatal(err)
	}
	classes := 0
	for _, p := range parts {
		labels := map[int]bool{}
		for _, i := range p {
			labels[s.Examples[i].Label] = true
			if s.Examples[i].User != s.Examples[p[0]].User {
				t.Fatal("a client has two users' posts")
			}
		}
		if len(p) < 15 || len(p) > 25 {
			t.Errorf("a user has %d posts", len(p))
		}
		classes += len(labels)
	}
	if mean := float64(classes) / 122; math.Abs(mean-1.70) > 0.005 {
		t.Errorf("%.2f classes of a user, want 1.70", mean)
	}
}

// A set without labels is divided as one with a single one.
func TestQuestionsAreDivided(t *testing.T) {
	set := &dataset.Set{}
	for i := range 100 {
		set.Examples = append(set.Examples, dataset.Example{Question: fmt.Sprint(i)})
	}
	parts, err := Dirichlet(set, 4, 1, 1)
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if err != nil || n != 100 {
		t.Errorf("%d of 100, %v", n, err)
	}
	halves, err := Split(set, 1, 0.5, 0.5)
	if err != nil || len(halves[0].Examples) != 50 {
		t.Error(err)
	}
}

// Rare labels go with their examples, whichever set they are in; the others keep theirs.
func TestCommonLabels(t *testing.T) {
	labels := []string{"a", "b", "c"}
	of := func(which ...int) *dataset.Set {
		s := &dataset.Set{Labels: labels}
		for i, l := range which {
			s.Examples = append(s.Examples, dataset.Example{Text: fmt.Sprint(i), Label: l})
		}
		return s
	}
	sets, dropped, err := Common(3, of(0, 1, 2, 2, 0), of(2, 0, 1))
	if err != nil || dropped != 1 || !reflect.DeepEqual(sets[0].Labels, []string{"a", "c"}) {
		t.Fatalf("%v, %d dropped, %v", sets, dropped, err)
	}
	if got := sets[0].Examples; len(got) != 4 || got[0].Label != 0 || got[1].Label != 1 || got[1].Text != "2" {
		t.Errorf("left: %v", got)
	}
	if got := sets[1].Examples; len(got) != 2 || got[0].Label != 1 {
		t.Errorf("left of the other: %v", got)
	}
	if _, _, err := Common(4, of(0, 0, 0, 0, 1, 2)); err == nil || !strings.Contains(err.Error(), "1 of 3 labels have 4 examples or more") {
		t.Errorf("one label is left: %v", err)
	}
	if _, _, err := Common(1, &dataset.Set{Examples: []dataset.Example{{Question: "?"}}}); err == nil {
		t.Error("questions have no classes")
	}
}

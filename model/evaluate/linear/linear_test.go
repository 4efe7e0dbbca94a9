package linear

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/nightly"
	"github.com/starling-fl/starling/internal/testkit/realdata"
)

// pairs are texts whose label no single word tells: the order of two words does.
func pairs(n int) *dataset.Set {
	s := &dataset.Set{Labels: []string{"none", "ab", "ba"}}
	for i := range n {
		label := 1 + i%2
		text := fmt.Sprintf("Ape, bear %d", i%7)
		if label == 2 {
			text = fmt.Sprintf("Bear. ape %d", i%7)
		}
		s.Examples = append(s.Examples, dataset.Example{Text: text, Label: label})
	}
	return s
}

// Words and pairs of words tell the labels apart; the same sets come to the same score.
func TestAgainst(t *testing.T) {
	first, err := Against(t.Context(), pairs(40), pairs(9))
	if err != nil || first.Accuracy != 1 || first.MacroF1 != 1 || first.Texts != 40 {
		t.Fatalf("%+v, %v", first, err)
	}
	wrong := pairs(10)
	for i := range 5 {
		wrong.Examples[i].Label = 3 - wrong.Examples[i].Label
	}
	if got, err := Against(t.Context(), pairs(40), wrong); err != nil || got.Accuracy != 0.5 || got.MacroF1 < 0.4 || got.MacroF1 > 0.6 {
		t.Errorf("%+v, %v", got, err)
	}
	noise := pairs(30)
	for i := range noise.Examples {
		noise.Examples[i].Label = i * i % 3
	}
	one, err := Against(t.Context(), noise, pairs(30))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if again, err := Against(t.Context(), noise, pairs(30)); err != nil || *again != *one {
			t.Errorf("%+v and %+v, %v", one, again, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Against(ended, pairs(40), pairs(9)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Other tasks have no linear reference, and labels in another order are no labels of it.
func TestNoReference(t *testing.T) {
	words := &dataset.Set{Labels: []string{"none", "ab", "ba"}, Examples: []dataset.Example{{Words: []string{"a"}, Tags: []int{1}, Boxes: [][4]uint16{{}}}}}
	one := &dataset.Set{Labels: []string{"a"}, Examples: []dataset.Example{{Text: "a"}}}
	for name, c := range map[string][2]*dataset.Set{"none": {nil, pairs(2)}, "no texts": {pairs(2), {Labels: []string{"none", "ab", "ba"}}}, "words": {words, pairs(2)}, "a label": {one, one}} {
		if _, err := Against(t.Context(), c[0], c[1]); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	turned := pairs(4)
	turned.Labels = []string{"none", "ba", "ab"}
	if _, err := Against(t.Context(), pairs(4), turned); err == nil || errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// Many texts, long ones and those of no word are taken within the bounds.
func TestBounds(t *testing.T) {
	long := pairs(4)
	long.Examples[0].Text = strings.Repeat("x y ", 10*mostWords)
	long.Examples[1].Text = "... !"
	if s, err := Against(t.Context(), long, long); err != nil || s.Texts != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	if n := len(terms(long.Examples[0].Text)); n != 2*mostWords-1 {
		t.Errorf("%d words and pairs", n)
	}
	got := evenly(pairs(10).Examples, 4)
	if len(got) != 4 || got[3].Text != pairs(10).Examples[7].Text {
		t.Errorf("%+v", got)
	}
}

// On real texts it comes to what is known of such models: 89 % of banking77, 96.8 % of R8's official test part. A tenth of
// the training part is scored here.
func TestRealTexts(t *testing.T) {
	nightly.Only(t, "two trainings of some seconds")
	set, err := dataset.Columns{Label: "category"}.Load(realdata.Path(t, "banking77/train.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	var train, test []int
	for i := range set.Examples {
		if i%10 == 3 {
			test = append(test, i)
		} else {
			train = append(train, i)
		}
	}
	if s, err := Against(t.Context(), set.Pick(train), set.Pick(test)); err != nil || s.Accuracy < 0.86 || s.MacroF1 < 0.86 {
		t.Errorf("%+v, %v", s, err)
	}
}

package task

import (
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

func TestTag(t *testing.T) {
	b, l := layout(t, model.Method{Task: model.TaskTag})
	k, err := New(b, l, 8)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"taxi", "xqzvj", "to", "the", "airport", "now"}
	rows, err := EncodeAll(k, []dataset.Example{{Words: words, Tags: []int{1, 2, 0, 0, 1, 2}}, {Words: words[:1], Tags: []int{2}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rows {
		if err := c.Check(2); err != nil {
			t.Error(err)
		}
	}
	// A sentence in one piece has the same tokens, framed; only whole words are in.
	tok := k.(*tags).tok
	whole := tok.EncodeFixed("taxi xqzvj to the airport now", 8)
	firsts := k.(Labeller).Places(rows, 0)
	n := 0
	for _, id := range rows[0].I32[:8] {
		if id != tok.PadID() {
			n++
		}
	}
	if got := rows[0].I32[:n-1]; !slices.Equal(got, whole[:n-1]) {
		t.Errorf("tokens %v of %v", got, whole)
	}
	at := len(k.(*tags).before)
	for i, first := range firsts {
		if first != at || rows[1].I32[first] != int32([]int{1, 2, 0, 0, 1, 2}[i]) {
			t.Errorf("word %d begins at %d with the label %d, want at %d", i, first, rows[1].I32[first], at)
		}
		at += len(tok.Encode(words[i]))
	}
	if len(firsts) == 0 || len(firsts) == len(words) || len(k.(Labeller).Places(rows, 1)) != 1 {
		t.Errorf("%d words fit, want some and not all", len(firsts))
	}
	for _, e := range []dataset.Example{{Text: "no words"}, {Words: words, Tags: []int{1}}} {
		if _, err := EncodeAll(k, []dataset.Example{e}); err == nil {
			t.Errorf("%+v", e)
		}
	}
	classify, _ := layout(t, model.Method{})
	c, err := New(classify, func() *model.Layout { _, l := layout(t, model.Method{}); return l }(), 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := EncodeAll(c, []dataset.Example{{Words: words, Tags: make([]int, 6)}}); err == nil {
		t.Error("tagged words in a job of labels")
	}
}

// By hand: of four words with a label other than 0 three are said to have one, two of
// them right, and one without is said to: 2*2/(4+4).
func TestTagF1(t *testing.T) {
	truths, said := single(1, 1, 2, 2, 0, 0), single(1, 2, 2, 0, 1, 0)
	if got := tagF1(said, truths, 0); got != 0.5 {
		t.Errorf("%v, want 0.5", got)
	}
	if got := tagF1(said, truths, -1); got != 0.5 { // 3 of 6
		t.Errorf("%v of all words, want 0.5", got)
	}
	if tagF1(single(0), single(0), 0) != 1 || tagF1(single(1), single(0), 0) != 0 {
		t.Error("nothing to find")
	}
}

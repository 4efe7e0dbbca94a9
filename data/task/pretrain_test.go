package task

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

func maskedTask(t *testing.T, sequence int) *masked {
	t.Helper()
	b, l := layoutOf(t, model.Method{Task: model.TaskPretrain}, 0)
	k, err := New(b, l, sequence)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*masked)
}

// The mask is of a device's own randomness: it is drawn anew each time, says what it
// covers, and leaves nothing of the one before. As often as it says, tokens are masked,
// random, or left.
func TestMasksAreDrawnAnew(t *testing.T) {
	m := maskedTask(t, 48)
	e := dataset.Example{Text: strings.Repeat("one taxi to the airport for two nights ", 5)}
	texts := []dataset.Example{e, {Text: "taxi"}}
	b, err := EncodeAll(m, texts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := EncodeAll(m, []dataset.Example{e})
	if err != nil || !slices.Equal(again.Int32(Tokens), b.Int32(Tokens)[:48]) {
		t.Errorf("a text is not always masked alike: %v", err)
	}
	text := m.tok.EncodeFixed(e.Text, 48)
	rnd := rand.NewChaCha8([32]byte{1})
	seen := map[int32]int{} // by place
	masks, other, left, first := 0, 0, 0, slices.Clone(b.Int32(Places))
	changed := false
	for range 400 {
		for row, e := range texts {
			if err := m.Draw(rnd, &e, b, row); err != nil {
				t.Fatal(err)
			}
		}
		changed = changed || !slices.Equal(first, b.Int32(Places))
		tokens := slices.Clone(b.Int32(Tokens)[:48])
		at, was := MaskedPlaces(b, 0)
		if want := 6; len(at) != want {
			t.Fatalf("%d of 40 tokens are masked, want %d", len(at), want)
		}
		for i, k := range at {
			place := b.Int32(Places)[k]
			seen[place]++
			if text[place] != was[i] {
				t.Fatalf("place %d was %d, told as %d", place, text[place], was[i])
			}
			switch tokens[place] {
			case m.mask.ID:
				masks++
			case was[i]:
				left++
			default:
				other++
			}
			tokens[place] = was[i]
		}
		if !slices.Equal(tokens, text) {
			t.Fatal("a mask of before is left")
		}
		if at, _ := MaskedPlaces(b, 1); len(at) != 1 || b.Int32(Places)[m.places] != 1 {
			t.Fatalf("of one token %d are masked", len(at))
		}
		for _, c := range b {
			if err := c.Check(2); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := float64(masks + other + left)
	near := func(got int, want float64) bool { return math.Abs(float64(got)/n-want) < 0.05 }
	if !changed || len(seen) != 40 || seen[0] != 0 || seen[41] != 0 || !near(masks, 0.8) || !near(other, 0.1) || !near(left, 0.1) {
		t.Errorf("%d masks, %d random, %d left at %v", masks, other, left, seen)
	}
	if err := m.Draw(bytes.NewReader(nil), &e, b, 1); err == nil {
		t.Error("a mask without randomness")
	}
}

// Every word of a long text is in one of its parts.
func TestMaskedTextsAreCut(t *testing.T) {
	m := maskedTask(t, 12)
	var words []string
	for i := range 50 {
		words = append(words, []string{"taxi", "airport", "nights", "xqzvj"}[i%4])
	}
	rows, of, err := Rows(m, []dataset.Example{{Text: strings.Join(words, " "), Line: 7}, {Words: []string{"two", "nights"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, r := range rows[:len(rows)-1] {
		if of[i] != 0 || r.Line != 7 {
			t.Errorf("row %d is of %d, line %d", i, of[i], r.Line)
		}
		if n := len(m.tok.Encode(r.Text)); n > 10 {
			t.Errorf("a part of %d tokens", n)
		}
		got = append(got, strings.Fields(r.Text)...)
	}
	if !slices.Equal(got, words) {
		t.Errorf("%d words of %d", len(got), len(words))
	}
	if _, err := EncodeAll(m, rows); err != nil {
		t.Error(err)
	}
	for _, bad := range []dataset.Example{{Text: " "}, {Image: &dataset.Image{}}} {
		if _, err := EncodeAll(m, []dataset.Example{bad}); err == nil {
			t.Errorf("%+v", bad)
		}
	}
	long := dataset.Example{Text: strings.Repeat("x.", 200)}
	if parts, err := m.Split(&long); err != nil || len(parts) != 1 {
		t.Errorf("%d parts, %v", len(parts), err)
	} else if _, err := EncodeAll(m, parts); err != nil {
		t.Error(err)
	}
}

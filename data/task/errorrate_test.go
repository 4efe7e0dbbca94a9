package task

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// distance tries every way to make one of the other.
func distance(said, right string) int {
	switch {
	case said == "":
		return len(right)
	case right == "":
		return len(said)
	case said[0] == right[0]:
		return min(distance(said[1:], right[1:]), 1+distance(said[1:], right), 1+distance(said, right[1:]))
	}
	return 1 + min(distance(said[1:], right[1:]), distance(said[1:], right), distance(said, right[1:]))
}

func TestEditsAreTheFewest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		text := func() string {
			b := make([]byte, rng.IntN(6))
			for i := range b {
				b[i] = "abc"[rng.IntN(3)]
			}
			return string(b)
		}
		said, right := text(), text()
		want := distance(said, right)
		characters := CharacterEdits(said, right)
		words := WordEdits(strings.Join(strings.Split(said, ""), " "), strings.Join(strings.Split(right, ""), "  "))
		if characters.all() != want || words != characters {
			t.Fatalf("%q for %q: %+v and %+v, want %d", said, right, characters, words, want)
		}
		if e := characters; e.Of != len(right) || len(right)-e.Deletions+e.Insertions != len(said) || e.Substitutions > min(len(said), len(right)) {
			t.Fatalf("%q for %q: %+v", said, right, e)
		}
	}
}

func TestErrorRate(t *testing.T) {
	e := WordEdits("one too three four", "one two  three").Add(WordEdits("", "five six"))
	if e != (Edits{Substitutions: 1, Deletions: 2, Insertions: 1, Of: 5}) || e.Rate() != 0.8 {
		t.Errorf("%+v, %v", e, e.Rate())
	}
	if r := WordEdits("a b c", "x").Rate(); r != 3 {
		t.Errorf("more words than are right: %v", r)
	}
	if r := WordEdits("", "").Rate(); r != 0 {
		t.Errorf("nothing of nothing: %v", r)
	}
	if e := CharacterEdits("naïve", "naive"); e.Substitutions != 1 || e.Of != 5 {
		t.Errorf("%+v", e)
	}
}

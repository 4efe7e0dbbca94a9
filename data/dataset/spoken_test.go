package dataset

import (
	"bytes"
	"math"
	"testing"
)

// The same seed gives the same words; speakers of one split are none of another's; every
// recording sounds, without being cut off.
func TestSpokenWords(t *testing.T) {
	set, err := Spoken(3, "train", 5, 40)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Spoken(3, "train", 5, 40)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Spoken(3, "test", 5, 40)
	if err != nil {
		t.Fatal(err)
	}
	users, sounds := map[string]int{}, map[string]bool{}
	for i, e := range set.Examples {
		users[e.User]++
		id := e.Recording.Identity()
		if e.Label != again.Examples[i].Label || !bytes.Equal(id, again.Examples[i].Recording.Identity()) {
			t.Fatalf("word %d is another the second time", i)
		}
		if sounds[string(id)] {
			t.Errorf("word %d sounds as another does", i)
		}
		sounds[string(id)] = true
		s, err := e.Recording.Decoded()
		if err != nil {
			t.Fatal(err)
		}
		loud := 0.0
		for _, v := range s.Samples {
			loud = math.Max(loud, math.Abs(float64(v)))
		}
		if len(s.Samples) != SpokenSamples || s.Rate != SpokenRate || !(loud > 0.05 && loud < 2) {
			t.Errorf("word %d has %d samples at %d, the loudest %v", i, len(s.Samples), s.Rate, loud)
		}
	}
	for _, e := range other.Examples {
		if users[e.User] > 0 {
			t.Errorf("speaker %s is in both splits", e.User)
		}
	}
	if len(users) != 5 || users["train-0"] != 8 {
		t.Errorf("speakers have %v words", users)
	}
	if _, err := Spoken(1, "train", 0, 4); err == nil {
		t.Error("no speakers, and no error")
	}
}

// A vowel is where its resonances are: the words' sounds differ in what carries them.
func TestPhonesAreApart(t *testing.T) {
	for _, word := range spokenWords {
		for _, p := range word {
			if _, ok := phones[p]; !ok {
				t.Errorf("%s has a sound %c that is none", word, p)
			}
		}
		if got := phoneAt([]rune(word), 0); got.formants != phones[rune(word[0])].formants {
			t.Errorf("%s begins as %+v", word, got)
		}
	}
	if got, want := phoneAt([]rune("ai"), 1).formants[0], (730+270)/2.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("between a and i the first resonance is %v, want %v", got, want)
	}
}

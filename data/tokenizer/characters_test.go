package tokenizer

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func characters(t *testing.T, doc map[string]any) (*Characters, error) {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return ParseCharacters(text)
}

// A text never becomes a special token, whatever it spells; what is not in the vocabulary is
// the unknown character, or refused where there is none.
func TestCharacters(t *testing.T) {
	doc := map[string]any{"vocab": map[string]int{"<p>": 1, "<u>": 0, "A": 2, "Ä": 3, "|": 5, "<s>": 6}, "pad_token": "<p>", "unk_token": "<u>",
		"bos_token": "<s>", "word_delimiter_token": "|", "do_lower_case": true}
	c, err := characters(t, doc)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := c.Encode("ä a|<s>ß")
	if err != nil || !slices.Equal(ids, []int32{3, 5, 2, 5, 0, 0, 0, 0, 0}) {
		t.Errorf("%v, %v", ids, err)
	}
	if got := c.Text([]int32{5, 3, 1, 3, 4, 2, 9, -1, 5}); got != "ää<u>a<u><u>" {
		t.Errorf("%q", got)
	}
	if c.Blank() != 1 || c.Size() != 7 || !slices.Equal(c.Letters(), []string{"a", "ä"}) {
		t.Errorf("blank %d, %d characters, letters %q", c.Blank(), c.Size(), c.Letters())
	}
	delete(doc, "unk_token")
	delete(doc["vocab"].(map[string]int), "<u>")
	if c, err = characters(t, doc); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Encode("ab"); err == nil || !strings.Contains(err.Error(), "'B'") {
		t.Errorf("a character that is not there: %v", err)
	}
	if _, err := c.Encode("a\xff"); err == nil {
		t.Error("what is no text is read")
	}
}

func TestCharactersRefused(t *testing.T) {
	vocab := func(v map[string]int) map[string]any { return map[string]any{"vocab": v, "pad_token": "_"} }
	for want, doc := range map[string]map[string]any{
		"has 1 characters":      vocab(map[string]int{"_": 0}),
		`no "_"`:                vocab(map[string]int{"a": 0, "b": 1}),
		"the id -1":             vocab(map[string]int{"_": 0, "a": -1}),
		"the id 16384":          vocab(map[string]int{"_": 0, "a": 1 << 14}),
		"is both":               vocab(map[string]int{"_": 0, "a": 1, "b": 1}),
		"want a character":      vocab(map[string]int{"_": 0, "": 1}),
		"is several characters": vocab(map[string]int{"_": 0, "ab": 1}),
		"cannot unmarshal":      {"vocab": []int{1}},
	} {
		if _, err := characters(t, doc); !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := ParseCharacters(make([]byte, maxParsedBytes+1)); !errors.Is(err, ErrVocab) {
		t.Error(err)
	}
}

// Whatever a base carries gives characters that encode what they spell, or an error.
func FuzzCharacters(f *testing.F) {
	f.Add([]byte(`{"vocab":{"<pad>":0,"|":1,"a":2,"<unk>":3},"pad_token":"<pad>","unk_token":"<unk>","word_delimiter_token":"|"}`), "a a")
	f.Add([]byte(`{"vocab":{"_":1,"ä":0},"pad_token":"_","do_lower_case":true}`), "ää")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		c, err := ParseCharacters(data)
		if err != nil {
			return
		}
		if c.Size() > maxCharacters || int(c.Blank()) >= c.Size() || c.Blank() < 0 {
			t.Fatalf("%d characters, the blank at %d", c.Size(), c.Blank())
		}
		ids, err := c.Encode(text)
		if err != nil {
			return
		}
		if len(ids) > 2*len(text) {
			t.Fatalf("%d ids of %d bytes", len(ids), len(text))
		}
		for _, id := range ids {
			if id < 0 || int(id) >= c.Size() || id == c.Blank() {
				t.Fatalf("id %d of %d, the blank is %d", id, c.Size(), c.Blank())
			}
		}
		c.Text(ids)
	})
}

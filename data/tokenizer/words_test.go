package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// Texts are cut as Hugging Face's tokenizers cut them for Llama 3, Qwen 2 and SmolLM, and with
// byte fallback for Llama 2 and Gemma.
func TestDecodersWords(t *testing.T) {
	cases := goldenCases(t, "words")
	if len(cases) != 5 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		tok, err := Parse(c.Tokenizer)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		for i, text := range c.Texts {
			if got := tok.Encode(text); !slices.Equal(got, c.IDs[i]) {
				t.Errorf("%s: %q is %v, want %v", c.Name, text, got, c.IDs[i])
			}
		}
		marks, err := NewMarks(c.Tokenizer, tok)
		if err != nil || len(c.Marked) < 50 {
			t.Fatalf("%s: %d marked texts: %v", c.Name, len(c.Marked), err)
		}
		for i, text := range c.Marked {
			if got := marks.Encode(text); !slices.Equal(got, c.Found[i]) {
				t.Errorf("%s: marked %q is %v, want %v", c.Name, text, got, c.Found[i])
			}
		}
		if got := tok.EncodeFixed("hello", max(2, len(c.Framed))); len(c.Framed) > 1 && !slices.Equal(got, c.Framed) {
			t.Errorf("%s: framed %v, want %v", c.Name, got, c.Framed)
		}
		if pad := tok.PadID(); slices.Contains([]string{"llama 3", "llama 2", "gemma"}, c.Name) != (pad < 0) {
			t.Errorf("%s: padding is %d", c.Name, pad)
		}
		if _, err := ParseFor(c.Tokenizer, 1<<20, 0); err == nil {
			t.Errorf("%s: taken for a model whose padding is 0", c.Name)
		}
		if _, err := ParseWithin(c.Tokenizer, 200); err == nil {
			t.Errorf("%s: taken for a model of 200 embeddings", c.Name)
		}
	}
}

func TestWordsThatNobodyKnowsAreRefused(t *testing.T) {
	good := string(bytePairJSON(testMerges...))
	const plain = `{"add_prefix_space":false,"type":"ByteLevel","use_regex":true}`
	const level = `{"type":"ByteLevel","use_regex":false}`
	for _, other := range []string{
		`null`, level,
		`{"type":"Sequence","pretokenizers":[]}`,
		`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{L}+"},"behavior":"Isolated"},` + level + `]}`,
		`{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":false},{"type":"ByteLevel"}]}`,
		`{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":true}]}`,
	} {
		if !strings.Contains(good, plain) {
			t.Fatal("the tokenizer is written otherwise")
		}
		_, err := Parse([]byte(strings.Replace(good, plain, other, 1)))
		if err == nil || !strings.Contains(err.Error(), "pre_tokenizer") {
			t.Errorf("%s: %v", other, err)
		}
	}
}

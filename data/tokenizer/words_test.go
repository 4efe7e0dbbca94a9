package tokenizer

import (
	"errors"
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

// A pre-tokenizer that is not known, or whose expression is not, is refused by name.
func TestWordsThatNobodyKnowsAreRefused(t *testing.T) {
	good := string(bytePairJSON(testMerges...))
	const plain = `{"add_prefix_space":false,"type":"ByteLevel","use_regex":true}`
	const level = `{"type":"ByteLevel","use_regex":false}`
	sequence := func(steps string) string { return `{"type":"Sequence","pretokenizers":[` + steps + `]}` }
	for other, want := range map[string]string{
		`{"type":"UnicodeScripts"}`: "UnicodeScripts",
		sequence(`{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"},` + level):      "unterminated group",
		sequence(`{"type":"Split","pattern":{"Regex":"(?<n>a)"},"behavior":"Isolated"},` + level): "a group that begins",
		sequence(`{"type":"Split","pattern":{"String":"a"},"behavior":"Somehow"},` + level):       "Somehow",
		sequence(`{"type":"Split","behavior":"Isolated"},` + level):                               "neither String nor Regex",
		sequence(`{"type":"Metaspace","replacement":"_"}`):                                        "replacement",
		sequence(`{"type":"Metaspace","replacement":"▁","prepend_scheme":"last"}`):                "prepend_scheme",
		sequence(`{"type":"CharDelimiterSplit","delimiter":"ab"}`):                                "delimiter",
		sequence(level + "," + level):                                                             "behind ByteLevel",
		sequence(strings.Repeat(`{"type":"Digits"},`, 16) + level):                                "the limit is 16",
		sequence(`{"type":"Sequence","pretokenizers":[` + level + `]}`):                           "Sequence",
	} {
		if !strings.Contains(good, plain) {
			t.Fatal("the tokenizer is written otherwise")
		}
		_, err := Parse([]byte(strings.Replace(good, plain, other, 1)))
		if !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), "pre_tokenizer") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", other, err, want)
		}
	}
}

// An expression that backtracks without an end costs a text its rest, and no more time than its
// length allows.
func TestExpressionsEnd(t *testing.T) {
	good := string(bytePairJSON(testMerges...))
	file := strings.Replace(good, `{"add_prefix_space":false,"type":"ByteLevel","use_regex":true}`,
		`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?:a|aa)+b"},"behavior":"Isolated"},{"type":"ByteLevel","use_regex":false}]}`, 1)
	tok, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if ids := tok.Encode("aab" + strings.Repeat("a", 100_000)); len(ids) > 3 {
		t.Errorf("%d ids", len(ids))
	}
	if ids := tok.Encode("aab hell"); len(ids) < 4 {
		t.Errorf("%v", ids)
	}
}

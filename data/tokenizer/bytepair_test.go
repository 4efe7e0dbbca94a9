package tokenizer

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// bytePairOf is a byte-level model with the given merges, in the order learned.
func bytePairOf(t testing.TB, merges ...string) *BytePair {
	t.Helper()
	tok, err := Parse(bytePairJSON(merges...))
	if err != nil {
		t.Fatal(err)
	}
	return tok.(*BytePair)
}

func bytePairJSON(merges ...string) []byte { return bytePairWith(nil, merges...) }

// bytePairWith is such a model's file with some of its parts replaced.
func bytePairWith(parts map[string]any, merges ...string) []byte {
	vocab := map[string]int{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
	for _, r := range byteSymbols {
		vocab[string(r)] = len(vocab)
	}
	for _, m := range merges {
		if joined := strings.Replace(m, " ", "", 1); vocab[joined] == 0 {
			vocab[joined] = len(vocab)
		}
	}
	file := map[string]any{
		"added_tokens":   []map[string]any{{"id": 1, "content": "<pad>", "special": true}},
		"pre_tokenizer":  map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"post_processor": map[string]any{"type": "RobertaProcessing", "sep": []any{"</s>", 2}, "cls": []any{"<s>", 0}},
		"model":          map[string]any{"type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": merges},
	}
	maps.Copy(file, parts)
	data, err := json.Marshal(file)
	if err != nil {
		panic(err)
	}
	return data
}

var testMerges = []string{"h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "a a", "aa aa", "l d", "aa a"}

func TestBytePairMerges(t *testing.T) {
	tok := bytePairOf(t, testMerges...)
	for text, want := range map[string]string{
		"hello world": "hello|Ġwor|ld",
		"hell":        "hell",
		"aaaaaaa":     "aaaa|aaa",
		"é":           "Ã|©",
		" hello":      "Ġ|hello",
		"</s>":        "<|/|s|>", // text never becomes special
		"":            "",
	} {
		var got []string
		for _, id := range tok.Encode(text) {
			got = append(got, tok.Piece(id))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("Encode(%q) = %q, want %s", text, got, want)
		}
		if back := tok.Decode(tok.Encode(text)); back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	}
	ids := tok.EncodeFixed("hello hello hello", 4)
	if len(ids) != 4 || ids[0] != 0 || ids[3] != 2 {
		t.Errorf("framed: %v", ids)
	}
	if ids = tok.EncodeFixed("", 4); !slices.Equal(ids, []int32{0, 2, 1, 1}) {
		t.Errorf("an empty text: %v", ids)
	}
}

// The heap gives what looking at every pair gives.
func TestLongWordsMergeAsShortOnes(t *testing.T) {
	tok := bytePairOf(t, testMerges...)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		word := make([]byte, 1+rng.IntN(60))
		for i := range word {
			word[i] = "hello wa"[rng.IntN(8)]
		}
		first := make([]int32, len(word))
		for i, b := range []byte(word) {
			first[i] = tok.bytes[b]
		}
		long, short := mergeLong(tok.merges, nil, first), mergeShort(tok.merges, slices.Clone(first), 0)
		if !slices.Equal(long, short) {
			t.Fatalf("%q: %v and %v", word, long, short)
		}
	}
}

func TestBytePairRefuses(t *testing.T) {
	good := string(bytePairJSON(testMerges...))
	for name, edit := range map[string][2]string{
		"model.merges[0]":  {`"h e"`, `"h zz"`},
		"has no space":     {`"h e"`, `"he"`},
		"dropout":          {`"type":"BPE"`, `"type":"BPE","dropout":0.1`},
		"behind ByteLevel": {`"pre_tokenizer":{`, `"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]},"other":{`},
		"byte_fallback":    {`"type":"BPE"`, `"type":"BPE","byte_fallback":true`},
		"normalizer":       {`"pre_tokenizer"`, `"normalizer":{"type":"Nmt"},"pre_tokenizer"`},
		"padding":          {`"added_tokens"`, `"padding":{"pad_id":-2},"added_tokens"`},
	} {
		_, err := Parse([]byte(strings.Replace(good, edit[0], edit[1], 1)))
		if !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseFor([]byte(good), 10, 1); !errors.Is(err, ErrVocab) {
		t.Errorf("a vocabulary larger than the model's: %v", err)
	}
	if _, err := ParseFor([]byte(strings.Replace(good, `"added_tokens"`, `"no_tokens"`, 1)), 1000, 1); !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), "no padding") {
		t.Errorf("no padding: %v", err)
	}
	if _, err := ParseFor([]byte(good), 1000, 0); !errors.Is(err, ErrVocab) {
		t.Errorf("another padding than the model's: %v", err)
	}
}

// A word as long as a hostile text must not take time quadratic in it: this ends
// within the test's own limit or not at all.
func TestLongWordEnds(t *testing.T) {
	tok := bytePairOf(t, testMerges...)
	if ids := tok.Encode(strings.Repeat("a", 1<<18)); len(ids) != 1<<16 {
		t.Errorf("%d ids", len(ids))
	}
}

func FuzzBytePair(f *testing.F) {
	tok := bytePairOf(f, testMerges...)
	f.Add("hello wor\xff ld's")
	f.Fuzz(func(t *testing.T, text string) {
		if back := tok.Decode(tok.Encode(text)); back != strings.ToValidUTF8(text, "\uFFFD") {
			t.Fatalf("%q came back as %q", text, back)
		}
		if n := len(tok.EncodeFixed(text, 8)); n != 8 {
			t.Fatal(n)
		}
	})
}

func BenchmarkBytePair(b *testing.B) {
	merges := strings.Split("t h|th e|Ġ the|i n|o n|r o|Ġ s|a t|e n|d o|l l|a r|Ġ m|Ġ c", "|")
	benchmarkTokenizer(b, bytePairOf(b, merges...))
}

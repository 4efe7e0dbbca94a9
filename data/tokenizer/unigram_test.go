package tokenizer

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The cases of SentencePiece itself, on its test model of 1,000 pieces.
func TestEncodeMatchesSentencePiece(t *testing.T) {
	tok, err := Parse(sharedFile(t, "t5_sentencepiece/test_sentencepiece.model"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range []string{"encode_dev.json", "expected.json"} {
		var file struct {
			Cases []struct {
				Text string
				IDs  []int32
			}
		}
		if err := json.Unmarshal(sharedFile(t, "t5_sentencepiece/"+name), &file); err != nil {
			t.Fatal(err)
		}
		for _, c := range file.Cases {
			n++
			if got := tok.Encode(c.Text); !slices.Equal(got, c.IDs) {
				t.Errorf("Encode(%q) = %v, want %v", c.Text, got, c.IDs)
			}
		}
	}
	if n != 156 {
		t.Errorf("%d cases, want 156", n)
	}
	if got := tok.EncodeFixed("This is a test", 9); !slices.Equal(got, []int32{285, 46, 10, 170, 382, 2, 0, 0, 0}) {
		t.Errorf("framed: %v", got)
	}
	if got := tok.Decode(tok.EncodeFixed("This is a test", 9)); got != "This is a test" {
		t.Errorf("decoded: %q", got)
	}
}

// unigramOf is a small model in the form of a tokenizer.json.
func unigramOf(t testing.TB, vocab string) Tokenizer {
	t.Helper()
	tok, err := Parse(unigramFile(vocab))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func unigramFile(vocab string) []byte {
	return []byte(`{"added_tokens":[{"id":0,"content":"<pad>","special":true},{"id":1,"content":"</s>","special":true},{"id":2,"content":"<unk>","special":true}],
		"normalizer":null,"pre_tokenizer":{"type":"Metaspace","replacement":"▁","add_prefix_space":true},
		"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},{"SpecialToken":{"id":"</s>"}}],
			"special_tokens":{"</s>":{"id":"</s>","ids":[1],"tokens":["</s>"]}}},
		"model":{"type":"Unigram","unk_id":2,"vocab":[["<pad>",0],["</s>",0],["<unk>",0],` + vocab + `]}}`)
}

// Viterbi against every way to cover short texts.
func TestUnigramTakesTheBestOfAllWays(t *testing.T) {
	tok := unigramOf(t, `["▁",-2.5],["a",-3.1],["b",-3.3],["ab",-5.9],["ba",-4.2],["▁a",-4.9],["aab",-8.0],["▁ba",-7.1],["aba",-7.4]`).(*Unigram)
	var walk func(s string) (score float64, ids []int32)
	walk = func(s string) (float64, []int32) {
		if s == "" {
			return 0, nil
		}
		best, ids := float64(-1e9), []int32(nil)
		for id := 3; id < len(tok.pieces); id++ {
			if rest, ok := strings.CutPrefix(s, tok.pieces[id]); ok {
				if score, tail := walk(rest); score+tok.scores[id] > best {
					best, ids = score+tok.scores[id], append([]int32{int32(id)}, tail...)
				}
			}
		}
		return best, ids
	}
	for n := range 1 << 9 {
		text := ""
		for i := range 9 {
			text += string("ab"[n>>i&1])
		}
		for cut := 1; cut <= 9; cut += 4 {
			_, want := walk(space + text[:cut])
			got := tok.Encode(text[:cut])
			sum := func(ids []int32) (s float64) {
				for _, id := range ids {
					s += tok.scores[id]
				}
				return s
			}
			if d := sum(got) - sum(want); d < -1e-4 {
				t.Fatalf("%q: %v scores %v, %v scores %v", text[:cut], got, sum(got), want, sum(want))
			}
		}
	}
}

func TestUnigramUnknownRunsAndSpecialTokens(t *testing.T) {
	tok := unigramOf(t, `["▁",-2],["a",-3]`)
	if got := tok.Encode("xyz a \xff\xff </s>"); !slices.Equal(got, []int32{3, 2, 3, 4, 3, 2, 3, 1}) {
		t.Errorf("ids %v", got)
	}
	if got := tok.Encode(" \t"); !slices.Equal(got, []int32{3, 2}) { // of Metaspace alone, which parts at spaces only
		t.Errorf("white space gives %v", got)
	}
}

// Characters that go with the one before them are those of tokenizers 0.23.3, which has Unicode 17: each was asked of it.
func TestMarks(t *testing.T) {
	marks := 0
	for r := range rune(unicode.MaxRune + 1) {
		if extends(r) {
			marks++
		}
	}
	if marks != 2619 || grapheme("²\u0897.") != 5 || grapheme("a\U000113b8b") != 5 {
		t.Errorf("%d marks, want 2619; %d %d", marks, grapheme("²\u0897."), grapheme("a\U000113b8b"))
	}
}

func FuzzParseSentencePiece(f *testing.F) {
	f.Add([]byte("\x0a\x0c\x0a\x05\xe2\x96\x81ab\x15\x00\x00\x80\xbf"))
	f.Add([]byte{0x1a, 0x04, 0x12, 0x02, 1, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := parseSentencePiece(data)
		if err != nil {
			return
		}
		for _, id := range tok.Encode("some text \u3000 ①") {
			if id < 0 || int(id) >= tok.VocabSize() {
				t.Fatalf("id %d of %d", id, tok.VocabSize())
			}
		}
	})
}

// A damaged map of characters must not be left.
func FuzzCharsmap(f *testing.F) {
	f.Add([]byte{8, 0, 0, 0, 0, 4, 0, 0, 'a', 1, 0, 0, 'b', 0}, "aab")
	f.Fuzz(func(t *testing.T, blob []byte, text string) {
		m, err := parseCharsmap(blob)
		if err != nil {
			return
		}
		for len(text) > 0 {
			before := len(text)
			if _, text = m.next(text); len(text) >= before {
				t.Fatal("nothing was taken")
			}
		}
	})
}

func BenchmarkUnigram(b *testing.B) {
	tok := unigramOf(b, alphabet())
	benchmarkTokenizer(b, tok)
}

// alphabet is all letters with and without a space before them, and frequent pairs.
func alphabet() string {
	var parts []string
	for c := 'a'; c <= 'z'; c++ {
		parts = append(parts, `["`+string(c)+`",-4.5]`, `["▁`+string(c)+`",-5.5]`)
		for _, v := range "aeiou" {
			parts = append(parts, `["`+string(c)+string(v)+`",-6]`)
		}
	}
	return strings.Join(parts, ",")
}

const benchText = "the quarterly profit rose to ten million dollars, the company said in a statement on monday; "

func benchmarkTokenizer(b *testing.B, tok Tokenizer) {
	text := strings.Repeat(benchText, 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Encode(text)
	}
}

// Runs of spaces are replaced as the regular expression says that a file has.
func TestSqueeze(t *testing.T) {
	want, rnd := regexp.MustCompile(runs), rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var b strings.Builder
		for range rnd.IntN(12) {
			b.WriteString([]string{" ", " ", " ", "a", "\t", "é", space, "\xe2\x96"}[rnd.IntN(8)])
		}
		for _, by := range []string{" ", space} {
			squeeze, err := (&step{Pattern: &textPattern{Regex: runs}, Content: by}).replacing()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := squeeze(b.String()), want.ReplaceAllLiteralString(b.String(), by); got != want {
				t.Fatalf("%q by %q: %q, want %q", b.String(), by, got, want)
			}
		}
	}
}

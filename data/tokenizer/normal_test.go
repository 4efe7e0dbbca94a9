package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Normalizers of Unicode, and tokens that were added for texts, give the ids that
// Hugging Face's tokenizers give where they are told to leave special tokens alone.
func TestNormalizers(t *testing.T) {
	cases := goldenCases(t, "normal")
	if len(cases) < 30 {
		t.Errorf("%d cases", len(cases))
	}
	for _, c := range cases {
		tok, err := Parse(c.Tokenizer)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		for i, text := range c.Texts {
			got := tok.Encode(text)
			if !slices.Equal(got, c.IDs[i]) {
				t.Errorf("%s: %q is %v, want %v", c.Name, text, got, c.IDs[i])
			}
			// Cut to a length it is the same, framed.
			long := tok.EncodeFixed(text, len(got)+2)
			if short := tok.EncodeFixed(text, 6); len(got) >= 4 && len(long) > 6 && !slices.Equal(short[:4], long[:4]) {
				t.Errorf("%s: %q cut to 6 is %v of %v", c.Name, text, short, long)
			}
		}
		if w, ok := tok.(*WordPiece); ok {
			again, err := json.Marshal(w)
			if err != nil {
				t.Fatal(err)
			}
			back, err := Parse(again)
			if err != nil {
				t.Fatalf("%s, written: %v", c.Name, err)
			}
			for _, text := range c.Texts {
				if !slices.Equal(back.Encode(text), tok.Encode(text)) {
					t.Errorf("%s, written: %q differs", c.Name, text)
				}
			}
		}
	}
}

// withTokens is a Unigram model's file, of the characters of a short alphabet, with one token
// for texts whose flags are bits.
func withTokens(content string, flags byte) []byte {
	js := func(v any) string {
		out, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(out)
	}
	file := string(unigramFile(`["a",-1],["b",-2],["▁",-3]`))
	file = strings.Replace(file, `"added_tokens":[`, fmt.Sprintf(`"added_tokens":[{"id":6,"content":%s,"single_word":%v,"lstrip":%v,"rstrip":%v,"normalized":%v,"special":false},`,
		js(content), flags&1 > 0, flags&2 > 0, flags&4 > 0, flags&8 > 0), 1)
	return []byte(strings.Replace(file, `"normalizer":null`, `"normalizer":{"type":"NFKC"}`, 1))
}

// FuzzTextTokens: whatever a token for texts is, encoding stays within its bounds, and a text
// without it is encoded as it would be without the token.
func FuzzTextTokens(f *testing.F) {
	f.Add("ab", byte(0), "a ab bab")
	f.Add(" ﬁ", byte(15), "aﬁ \t fi\u0301")
	f.Fuzz(func(t *testing.T, content string, flags byte, text string) {
		tok, err := Parse(withTokens(content, flags))
		if err != nil {
			return
		}
		plain, err := Parse([]byte(strings.Replace(string(unigramFile(`["a",-1],["b",-2],["▁",-3]`)), `"normalizer":null`, `"normalizer":{"type":"NFKC"}`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		all, some := tok.Encode(text), tok.EncodeFixed(text, 8)
		for i := range min(len(all), 6) {
			if !slices.Contains(some, all[i]) {
				t.Errorf("id %d is not among %v", all[i], some)
			}
		}
		if len(all) > 2*grown(text) {
			t.Errorf("%d ids of %d bytes", len(all), len(text))
		}
		if want := plain.Encode(text); !slices.Contains(all, 6) && !slices.Equal(all, want) {
			t.Errorf("%q without the token is %v, want %v", text, all, want)
		}
	})
}

// Many parts between tokens have no more room to grow than the text has by itself.
func TestTextTokensGrow(t *testing.T) {
	tok, err := Parse(withTokens("a", 0))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("aﷺ", 1000) // U+FDFA is 18 characters in NFKC
	if got := len(tok.Encode(text)); got > grown(text) {
		t.Errorf("%d bytes became %d ids", len(text), got)
	}
}

func TestTextTokensRefused(t *testing.T) {
	for want, content := range map[string]string{"bytes, the limit is 128": strings.Repeat("a", 129), "has 300 bytes": strings.Repeat("a", 300)} {
		if _, err := Parse(withTokens(content, 0)); !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	file := strings.Replace(string(withTokens("ab", 0)), `"id":6`, `"id":9`, 1)
	if _, err := Parse([]byte(file)); err == nil || !strings.Contains(err.Error(), "behind a gap") {
		t.Error(err)
	}
}

package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func fallbackJSON(prefix bool) string {
	vocab := map[string]int{"<unk>": 0, "<s>": 1, "</s>": 2, space: 3, "a": 4, "b": 5, "ab": 6, space + "ab": 7}
	for b := range 256 {
		vocab[fmt.Sprintf("<0x%02X>", b)] = 8 + b
	}
	normalizer := map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": space}
	if prefix {
		normalizer = map[string]any{"type": "Sequence", "normalizers": []any{map[string]any{"type": "Prepend", "prepend": space}, normalizer}}
	}
	data, err := json.Marshal(map[string]any{"normalizer": normalizer, "added_tokens": []any{},
		"model": map[string]any{"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "vocab": vocab, "merges": []string{"a b", space + " ab"}}})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestFallbackPairRefuses(t *testing.T) {
	good := fallbackJSON(true)
	for name, edit := range map[string][2]string{
		"normalizer":      {`"Prepend"`, `"Nmt"`},
		"dropout":         {`"byte_fallback":true`, `"byte_fallback":true,"dropout":0.5`},
		"byte_fallback":   {`"normalizer":{`, `"pre_tokenizer":{"type":"ByteLevel"},"normalizer":{`},
		"unk_token":       {`"unk_token":"\u003cunk\u003e"`, `"unk_token":"zz"`},
		"model.merges[0]": {`"a b"`, `"a zz"`},
	} {
		text := strings.Replace(good, edit[0], edit[1], 1)
		if text == good {
			t.Fatalf("%s: nothing is edited", name)
		}
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a vocabulary lacks becomes what tokenizers 0.23 makes of it: a byte-level one drops a byte, as
// SmolLM2's published one does with 21, or has unk_token for it; one with byte_fallback needs all
// bytes of a character.
func TestMissingBytes(t *testing.T) {
	level := string(bytePairJSON(testMerges...))
	without := func(file, piece string) string {
		out := regexp.MustCompile(regexp.QuoteMeta(piece)+`:\d+,`).ReplaceAllString(file, "")
		if out == file {
			t.Fatalf("%s is not there", piece)
		}
		return out
	}
	noUnknown := strings.Replace(level, `"unk_token":"\u003cunk\u003e",`, "", 1)
	fallback := strings.Replace(without(fallbackJSON(false), `"\u003c0xC3\u003e"`), `"byte_fallback":true`, `"byte_fallback":true,"fuse_unk":true`, 1)
	for name, c := range map[string]struct{ file, text, want string }{
		"dropped":          {without(noUnknown, `"Ą"`), "h\x04e", "h|e"},
		"all dropped":      {without(noUnknown, `"Ą"`), strings.Repeat("\x04", 40), ""},
		"unknown":          {without(level, `"Ą"`), "h\x04\x04e", "h|<unk>|<unk>|e"},
		"byte fallback":    {fallbackJSON(false), "aé", "a|<0xC3>|<0xA9>"},
		"fallback lacks":   {fallback, "aéé日", "a|<0xE6>|<0x97>|<0xA5>|<unk>"},
		"fallback, no unk": {strings.Replace(fallback, `"unk_token":"\u003cunk\u003e",`, "", 1), "aéb", "ab"},
	} {
		tok, err := Parse([]byte(c.file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, id := range tok.Encode(c.text) {
			got = append(got, tok.Piece(id))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzFallbackPair(f *testing.F) {
	plain, err := Parse([]byte(fallbackJSON(false)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("ab  ab\xff \u2581 aab")
	f.Fuzz(func(t *testing.T, text string) {
		want := strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), space, " ")
		if back := plain.Decode(plain.Encode(text)); back != want {
			t.Fatalf("%q came back as %q", text, back)
		}
		if n := len(plain.EncodeFixed(text, 8)); n != 8 {
			t.Fatal(n)
		}
	})
}

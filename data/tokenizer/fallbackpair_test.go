package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
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
		"normalizer":      {`"Prepend"`, `"NFC"`},
		"byte 0x61":       {`"\u003c0x61\u003e":`, `"nothing":`},
		"dropout":         {`"byte_fallback":true`, `"byte_fallback":true,"dropout":0.5`},
		"ignore_merges":   {`"byte_fallback":true`, `"byte_fallback":true,"ignore_merges":true`},
		"pre_tokenizer":   {`"normalizer":{`, `"pre_tokenizer":{"type":"ByteLevel"},"normalizer":{`},
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

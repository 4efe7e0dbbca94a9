package tiny

import (
	"encoding/json"
	"testing"

	"github.com/starling-fl/starling/model"
)

// Decoder is a llama of one layer whose tokens are bytes, and whose 256th ends a text.
func Decoder(t testing.TB, hidden, positions int) *model.Base {
	t.Helper()
	c := model.Llama(257, hidden, 1, 2, positions)
	c.Decoder.Ends, c.PadTokenID = model.Ends{256, 256, 256, 256}, 256
	return Filled(t, c, 20, Bytes(t))
}

// Bytes is the tokenizer.json of a byte-level BPE without merges.
func Bytes(t testing.TB) []byte {
	t.Helper()
	vocab, next := map[string]int{}, 256
	for b := range 256 { // GPT-2's alphabet
		r := b
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r = next
			next++
		}
		vocab[string(rune(r))] = b
	}
	text, err := json.Marshal(map[string]any{
		"added_tokens":  []map[string]any{{"id": 256, "content": "<|endoftext|>", "special": true}},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

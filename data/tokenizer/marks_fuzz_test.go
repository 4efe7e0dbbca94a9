package tokenizer

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/starling-fl/starling/internal/testkit/allocation"
)

// FuzzMarks: whatever tokens a stranger's file adds, and however it marks them, a text becomes ids of
// the vocabulary, in number and memory by its length, and a text that spells none of them becomes what
// it becomes without.
func FuzzMarks(f *testing.F) {
	f.Add("<s>", byte(0), "</s>", byte(31), "a <s> b </s>")
	f.Add(" ", byte(6), "  ", byte(14), "  a    b")
	f.Add("a", byte(1), "aa", byte(8), "aaa aa a")
	f.Fuzz(func(t *testing.T, first string, firstFlags byte, second string, secondFlags byte, text string) {
		token := func(id int, content string, flags byte) map[string]any {
			return map[string]any{"id": id, "content": content, "single_word": flags&1 > 0, "lstrip": flags&2 > 0, "rstrip": flags&4 > 0,
				"normalized": flags&8 > 0, "special": flags&16 > 0}
		}
		data := bytePairWith(map[string]any{"added_tokens": []any{token(1, "<pad>", 16), token(270, first, firstFlags), token(271, second, secondFlags)}},
			testMerges...)
		tok, err := Parse(data)
		if err != nil {
			return
		}
		marks, err := NewMarks(data, tok)
		if err != nil {
			return
		}
		var ids []int32
		allocation.Bounded(t, grown(text), func() { ids = marks.Encode(text) })
		if len(ids) > grown(text) {
			t.Errorf("%d ids of %d bytes", len(ids), len(text))
		}
		found := false
		for _, id := range ids {
			if id < 0 || int(id) >= tok.VocabSize() {
				t.Errorf("id %d of %d", id, tok.VocabSize())
			}
			found = found || id == 1 || id >= 270
		}
		if !found && utf8.ValidString(text) && fmt.Sprint(ids) != fmt.Sprint(tok.Encode(text)) {
			t.Errorf("%q: %v with marks, %v without", text, ids, tok.Encode(text))
		}
	})
}

package unigram

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/tokenizer"
)

func TestTrain(t *testing.T) {
	texts := slices.Values(slices.Repeat([]string{"Invoice number INV-48213 of 12.03.2024", "Total due EUR 1204.55", "invoice total Größe"}, 20))
	js, err := Train(texts, 80, []string{"<loc_0>", "<text_0>"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Train(texts, 80, []string{"<loc_0>", "<text_0>"})
	if err != nil || !bytes.Equal(js, again) {
		t.Error("the same texts give other bytes")
	}
	tok, err := tokenizer.Parse(js)
	if err != nil {
		t.Fatal(err)
	}
	if n := tok.VocabSize(); n > 80 || n < 40 || tok.PadID() != 0 || tok.Piece(1) != "</s>" || tok.Piece(int32(n-1)) != "<text_0>" {
		t.Errorf("%d pieces, padding %d, end %q, last %q", n, tok.PadID(), tok.Piece(1), tok.Piece(int32(n-1)))
	}
	for _, text := range []string{"Invoice number INV-48213", "Total EUR 1204.55", "Größe of EURT"} {
		ids := tok.Encode(text)
		if got := tok.Decode(ids); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
		for _, id := range ids {
			if digits := strings.Count(strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return '0'
				}
				return r
			}, tok.Piece(id)), "0"); digits > 2 {
				t.Errorf("the piece %q has %d digits", tok.Piece(id), digits)
			}
		}
	}
	if n := len(tok.Encode("Invoice")); n > 2 {
		t.Errorf("a frequent word takes %d tokens", n)
	}
	// As in the tokenizers library, text becomes no added token, but a piece of the model's own, which </s> is.
	if ids := tok.Encode("<text_0></s>"); slices.Contains(ids, int32(tok.VocabSize()-1)) || ids[len(ids)-1] != 1 {
		t.Errorf("<text_0></s> is %v", ids)
	}
	if _, err := Train(texts, 20, nil); err == nil {
		t.Error("fewer pieces than characters")
	}
	if _, err := Train(slices.Values([]string(nil)), 20, nil); err == nil {
		t.Error("no text")
	}
}

package tokenizer

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/realdata"
)

func sharedFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(realdata.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The pieces and ids were written by another implementation over BERT's own
// vocabulary.
func TestEncodeMatchesBERT(t *testing.T) {
	vocab := strings.Split(strings.TrimRight(string(sharedFile(t, "bert_wordpiece/vocab.txt")), "\n"), "\n")
	tok, err := FromVocab(vocab)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text      string   `json:"text"`
		WordPiece []string `json:"wordpiece"`
		IDs       []int32  `json:"ids"`
	}
	if err := json.Unmarshal(sharedFile(t, "bert_wordpiece/squad_questions_wordpiece_dev.json"), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 100 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		if got := tok.Encode(c.Text); !slices.Equal(got, c.IDs) {
			t.Errorf("Encode(%q) = %v, want %v %q", c.Text, got, c.IDs, c.WordPiece)
		}
	}
}

func small(t testing.TB) *WordPiece {
	t.Helper()
	tok, err := FromVocab([]string{Pad, Unknown, Cls, Sep, Mask, "in", "##vo", "##ice", "total", ":", "u", "##n", "東", "cafe"})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestEncodeRules(t *testing.T) {
	tok := small(t)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"Invoice TOTAL:", []string{"in", "##vo", "##ice", "total", ":"}},
		{"un", []string{"u", "##n"}},
		{"unx total", []string{Unknown, "total"}}, // a word is covered whole or not at all
		{"total東total", []string{"total", "東", "total"}},
		{"Caf\u00e9 caf\u0065\u0301", []string{"cafe", "cafe"}},
		{"to\x00tal \u200btotal\ufffd", []string{"total", "total"}},
		{strings.Repeat("u", 101), []string{Unknown}},
		{"\xff\xfetotal", []string{"total"}},
		{"", nil},
	} {
		var got []string
		for _, id := range tok.Encode(c.text) {
			got = append(got, tok.Piece(id))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("Encode(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestEncodeFixed(t *testing.T) {
	tok := small(t)
	if got, want := tok.EncodeFixed("total total", 6), []int32{2, 8, 8, 3, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("short text: %v, want %v", got, want)
	}
	if got, want := tok.EncodeFixed(strings.Repeat("total ", 100000), 4), []int32{2, 8, 8, 3}; !slices.Equal(got, want) {
		t.Errorf("long text: %v, want %v", got, want)
	}
	if got, want := tok.EncodeFixed(strings.Repeat(" ", 100000)+"total", 4), []int32{2, 8, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("text after much space: %v, want %v", got, want)
	}
	if got := tok.Decode(tok.EncodeFixed("Invoice total", 8)); got != "invoice total" {
		t.Errorf("Decode = %q", got)
	}
}

func TestTrainCoversAndRepeats(t *testing.T) {
	corpus := []string{
		"the invoice lists the total due", "the totals of all invoices are due", "pay the invoice in total",
		"late payment of invoices adds a fee of 2,50", "payments due: total",
	}
	a, err := Train(slices.Values(corpus), 120)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Train(slices.Values(corpus), 120)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a.pieces, b.pieces) {
		t.Error("training twice gave two vocabularies")
	}
	for _, text := range corpus {
		if ids := a.Encode(text); slices.Contains(ids, a.UnknownID()) {
			t.Errorf("training text %q has unknown words", text)
		} else if a.Decode(ids) == "" {
			t.Errorf("%q decodes to nothing", text)
		}
	}
	if ids := a.Encode("invoice"); len(ids) != 1 {
		t.Errorf("a frequent word takes %d pieces", len(ids))
	}
	if _, err := Train(slices.Values(corpus), 10); !errors.Is(err, ErrVocab) {
		t.Errorf("a vocabulary below the alphabet gave %v", err)
	}
	if _, err := Train(slices.Values([]string{" "}), 100); !errors.Is(err, ErrVocab) {
		t.Errorf("an empty corpus gave %v", err)
	}
}

// mergesByHand recounts all pairs for each merge: the plain twin of the
// trainer's incremental counts.
func mergesByHand(counts map[string]int, size int) []string {
	tr := newTrainer(counts)
	for len(tr.pieces) < size {
		all := map[pair]int{}
		for _, w := range tr.words {
			for i := 1; i < len(w.pieces); i++ {
				all[pair{w.pieces[i-1], w.pieces[i]}] += w.count
			}
		}
		var queue candidates
		for p, n := range all {
			queue = append(queue, candidate{p, n, tr.pieces[p.left], tr.pieces[p.right]})
		}
		if len(queue) == 0 {
			break
		}
		best := slices.MinFunc(queue, func(x, y candidate) int {
			if (candidates{x, y}).Less(0, 1) {
				return -1
			}
			return 1
		})
		if best.count < 2 {
			break
		}
		joined := tr.add(best.left + strings.TrimPrefix(best.right, continuation))
		for at := range tr.words {
			w := &tr.words[at]
			var out []int32
			for i := 0; i < len(w.pieces); i++ {
				if i+1 < len(w.pieces) && (pair{w.pieces[i], w.pieces[i+1]}) == best.pair {
					out = append(out, joined)
					i++
				} else {
					out = append(out, w.pieces[i])
				}
			}
			w.pieces = out
		}
	}
	return tr.pieces
}

func TestTrainMatchesRecounting(t *testing.T) {
	counts := map[string]int{}
	text := `banana bandana ananas an banal cabana aaaa aaaaa abab ababab total totals subtotal
		totally invoice invoices invoiced voice voices vice advice banana banana aaaa abab`
	for w := range words(text) {
		counts[w]++
	}
	got, err := Train(slices.Values([]string{text}), 90)
	if err != nil {
		t.Fatal(err)
	}
	if want := mergesByHand(counts, 90); !slices.Equal(got.pieces, want) {
		t.Errorf("incremental: %q\nrecounted:   %q", got.pieces, want)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	tok := small(t)
	data, err := json.Marshal(tok)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(tok, back) {
		t.Errorf("round trip changed the tokenizer: %+v != %+v", back, tok)
	}
}

func TestParseRefuses(t *testing.T) {
	good, err := json.Marshal(small(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"model.type":            {`"type":"WordPiece","unk_token"`, `"type":"WordLevel","unk_token"`},
		"max_input_chars":       {`"max_input_chars_per_word":100`, `"max_input_chars_per_word":9`},
		"pre_tokenizer":         {`"BertPreTokenizer"`, `"Whitespace"`},
		"[SEP] is missing":      {`"[SEP]":3`, `"[SEPARATE]":3`},
		"out of 0..13":          {`"total":8`, `"total":80`},
		"used twice":            {`"total":8`, `"total":9`},
		"tokenizer.json":        {`{`, `[`},
		"continuing_subword":    {`"continuing_subword_prefix":"##"`, `"continuing_subword_prefix":"@@"`},
		"unk_token":             {`"unk_token":"[UNK]"`, `"unk_token":"?"`},
		"must be 1..400 bytes ": {`"total":8`, `"` + strings.Repeat("t", 401) + `":8`},
	} {
		_, err := Parse([]byte(strings.Replace(string(good), edit[0], edit[1], 1)))
		if !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), name) {
			t.Errorf("edit %q: error %v does not name %q", edit[1], err, name)
		}
	}
}

func FuzzParse(f *testing.F) {
	good, _ := json.Marshal(small(f))
	f.Add(good)
	f.Add([]byte(`{"model":{"type":"WordPiece","vocab":{"a":0}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := Parse(data)
		tok, wordPiece := parsed.(*WordPiece)
		if err != nil || !wordPiece {
			return
		}
		out, err := json.Marshal(tok)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(out)
		if err != nil || !slices.Equal(back.(*WordPiece).pieces, tok.pieces) {
			t.Fatalf("decode, encode, decode: %v", err)
		}
	})
}

func FuzzEncode(f *testing.F) {
	tok := small(f)
	f.Add("Invoice total: 東 café")
	f.Fuzz(func(t *testing.T, text string) {
		for _, id := range tok.Encode(text) {
			if id < 0 || int(id) >= tok.VocabSize() {
				t.Fatalf("id %d outside the vocabulary", id)
			}
		}
		if n := len(tok.EncodeFixed(text, 16)); n != 16 {
			t.Fatalf("EncodeFixed gave %d ids", n)
		}
	})
}

func BenchmarkWordPiece(b *testing.B) {
	pieces := []string{Pad, Unknown, Cls, Sep, Mask, "the", "company", "profit", ",", ";"}
	for c := 'a'; c <= 'z'; c++ {
		pieces = append(pieces, string(c), "##"+string(c))
	}
	tok, err := FromVocab(pieces)
	if err != nil {
		b.Fatal(err)
	}
	benchmarkTokenizer(b, tok)
}

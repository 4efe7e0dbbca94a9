package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Files that sentencepiece has trained with every option, and its ids
// (lab/bench/interop/goldens.py).
func TestSentencePieceFiles(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "sentencepiece.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Texts  []string
		Models []struct {
			Name    string
			Model   []byte
			IDs     [][]int32
			Decoded []string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, m := range file.Models {
		tok, err := Parse(m.Model)
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		for i, text := range file.Texts {
			got := tok.Encode(text)
			if !slices.Equal(got, m.IDs[i]) {
				t.Errorf("%s: Encode(%q) = %v, want %v", m.Name, text, got, m.IDs[i])
			}
			if slices.Contains(got, tok.UnknownID()) { // sentencepiece writes these with spaces of its own
				continue
			}
			if back := tok.Decode(got); back != m.Decoded[i] {
				t.Errorf("%s: Decode(%v) = %q, want %q", m.Name, got, back, m.Decoded[i])
			}
		}
	}
	if len(file.Models) != 9 {
		t.Errorf("%d models", len(file.Models))
	}
}

// carried is a file as package model carries it in a base.
func carried(file []byte, sentinels, vocab int, added string) []byte {
	return fmt.Appendf(nil, `{"version":"1.0","added_tokens":[%s],"model":{"type":"SentencePiece","file":%q,"extra_ids":%d,"vocab_size":%d}}`,
		added, base64.StdEncoding.EncodeToString(file), sentinels, vocab)
}

// smallFile is a model of five pieces: padding, the end, the unknown, a space and a.
func smallFile() []byte {
	piece := func(text string, kind byte) string {
		p := "\x0a" + string(rune(len(text))) + text + "\x15\x00\x00\x80\xbf" + "\x18" + string(rune(kind))
		return "\x0a" + string(rune(len(p))) + p
	}
	return []byte(piece("<pad>", kindControl) + piece("</s>", kindControl) + piece("<unk>", kindUnknown) + piece(space, kindNormal) +
		piece("a", kindNormal) + "\x12\x06\xd0\x02\x01\xd8\x02\x00")
}

// T5's sentinels lie behind the file's pieces, the last first, as far as the model has
// embeddings for them, and texts never become them.
func TestSentencePieceCarried(t *testing.T) {
	for _, c := range []struct {
		sentinels, vocab int
		added            string
		size             int
		last             string
	}{
		{100, 128, "", 105, "<extra_id_0>"},
		{100, 50, "", 50, "<extra_id_55>"},
		{0, 50, "", 5, "a"},
		{2, 50, `{"id":1,"content":"</s>","special":true},{"id":5,"content":"<extra_id_1>","special":true},{"id":7,"content":"<new>","special":true}`, 8, "<new>"},
	} {
		tok, err := ParseFor(carried(smallFile(), c.sentinels, c.vocab, c.added), c.vocab, 0)
		if err != nil {
			t.Fatal(err)
		}
		if tok.VocabSize() != c.size || tok.Piece(int32(c.size-1)) != c.last {
			t.Errorf("%d sentinels in %d: %d pieces, the last %q", c.sentinels, c.vocab, tok.VocabSize(), tok.Piece(int32(c.size-1)))
		}
		if got := tok.EncodeFixed("a a<extra_id_0>", 9); !slices.Equal(got, []int32{3, 4, 3, 4, 2, 4, 2, 1, 0}) {
			t.Errorf("ids %v", got)
		}
	}
	for want, file := range map[string][]byte{
		"extra_ids":     carried(smallFile(), 1<<20, 50, ""),
		"where Sentenc": carried(smallFile(), 0, 50, `{"id":3,"content":"<new>","special":true}`),
		"not special":   carried(smallFile(), 0, 50, `{"id":5,"content":"<new>"}`),
		"behind a gap":  carried(smallFile(), 0, 50, `{"id":9,"content":"<new>","special":true}`),
		"neither":       carried([]byte("no model"), 0, 50, ""),
		"no piece is":   carried(nil, 0, 50, ""),
		"tokenizer.jso": []byte(`{"model":{"type":"SentencePiece","file":"*"}}`),
		"byte_fallback": carried(append(smallFile(), "\x12\x03\x98\x02\x01"...), 0, 50, ""),
		"model_type":    carried(append(smallFile(), "\x12\x02\x18\x02"...), 0, 50, ""),
	} {
		if _, err := Parse(file); !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// What Metaspace does alone, behind WhitespaceSplit and behind what SentencePiece's
// conversions put before it, in tokenizers 0.23.
func TestMetaspaceMatchesTokenizers(t *testing.T) {
	const alone = `{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}`
	const fields = `{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},` + alone + `]}`
	const squeeze = `{"type":"Sequence","normalizers":[{"type":"Strip","strip_left":false,"strip_right":true},
		{"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"}]}`
	file := func(normalizer, before string) []byte {
		return []byte(`{"added_tokens":[{"id":0,"content":"<pad>","special":true},{"id":1,"content":"</s>","special":true},{"id":2,"content":"<unk>","special":true}],"normalizer":` + normalizer +
			`,"pre_tokenizer":` + before + `,"post_processor":null,"model":{"type":"Unigram","unk_id":2,"vocab":[["<pad>",0],["</s>",0],["<unk>",0],` +
			`["▁",-2],["a",-3],["b",-3.5],["▁a",-4],["▁▁",-5]]}}`)
	}
	texts := []string{"", " ", "  ", "a b", " a", "a ", "a  b", "a ▁b", "xz y", "▁a", "a\tb"}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"alone":    {file("null", alone), `["", "▁", "▁ ▁", "▁a ▁ b", "▁a", "▁a ▁", "▁a ▁ ▁ b", "▁a ▁ ▁ b", "▁ <unk> ▁ <unk>", "▁a", "▁a <unk> b"]`},
		"fields":   {file("null", fields), `["", "", "", "▁a ▁ b", "▁a", "▁a", "▁a ▁ b", "▁a ▁ b", "▁ <unk> ▁ <unk>", "▁a", "▁a ▁ b"]`},
		"squeezed": {file(squeeze, alone), `["", "", "", "▁a ▁ b", "▁a", "▁a", "▁a ▁ b", "▁a ▁ ▁ b", "▁ <unk> ▁ <unk>", "▁a", "▁a <unk> b"]`},
		"whole": {file("null", strings.Replace(alone, "true", "false", 1)),
			`["", "▁", "▁ ▁", "▁a ▁ b", "▁a", "▁a ▁", "▁a ▁ ▁ b", "▁a ▁ ▁ b", "▁ <unk> ▁ <unk>", "▁a", "▁a <unk> b"]`},
		"never": {file("null", strings.Replace(alone, "always", "never", 1)),
			`["", "▁", "▁ ▁", "a ▁ b", "▁a", "a ▁", "a ▁ ▁ b", "a ▁ ▁ b", "<unk> ▁ <unk>", "▁a", "a <unk> b"]`},
	} {
		tok, err := Parse(c.file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var want []string
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			var pieces []string
			for _, id := range tok.Encode(text) {
				pieces = append(pieces, tok.Piece(id))
			}
			if got := strings.Join(pieces, " "); got != want[i] {
				t.Errorf("%s: %q is %q, want %q", name, text, got, want[i])
			}
		}
	}
	first := strings.Replace(fields, "always", "first", 1)
	if _, err := Parse(file("null", first)); err == nil || !strings.Contains(err.Error(), "prepend_scheme") {
		t.Errorf("a prefix for the first word alone: %v", err)
	}
}

// Precompiled of tokenizers maps by what a reader takes for a character, and leaves marks
// out that SentencePiece keeps.
func TestGraphemesMatchTokenizers(t *testing.T) {
	f, err := readSentencePiece(sharedFile(t, "t5_sentencepiece/test_sentencepiece.model"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseCharsmap(f.rules)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"a\u0308\u0301": "ä", "e\u0301": "é", "ﬁ\u0301": "fi", "①\u0308": "1", "\r\n": " ", "\r\r\n": "  ", "q\u0323\u0307": "q\u0323\u0307",
		"न\u093f": "न\u093f", "👍🏽": "👍🏽", "1\ufe0f\u20e3": "1\ufe0f\u20e3", "x\u200b": "x ", "á\u200d": "á ", "\u1e9b\u0323": "\u1e61",
		"\u1100\u1161\u11a8": "\u1100\u1161\u11a8",
	} {
		if got := m.byGraphemes(text); got != want {
			t.Errorf("%+q becomes %+q, want %+q", text, got, want)
		}
	}
}

// A carried file is a stranger's, inside and out.
func FuzzSentencePieceCarried(f *testing.F) {
	f.Add(smallFile(), 100, 128, `{"id":5,"content":"x","special":true}`, "a b")
	f.Add([]byte("\x12\x03\x98\x02\x01"), 0, 1, "", "\xff")
	f.Fuzz(func(t *testing.T, file []byte, sentinels, vocab int, added, text string) {
		tok, err := Parse(carried(file, sentinels, vocab, added))
		if err != nil {
			return
		}
		for _, id := range tok.Encode(text) {
			if id < 0 || int(id) >= tok.VocabSize() {
				t.Fatalf("id %d of %d", id, tok.VocabSize())
			}
		}
		tok.Decode(tok.Encode(text))
	})
}

// A hostile file costs memory by its length and no more, whatever it claims.
func TestSentencePieceAllocates(t *testing.T) {
	empty := []byte(strings.Repeat("\x0a\x00", 1<<18))
	var distinct []byte
	for i := range 1 << 14 {
		distinct = append(distinct, fmt.Sprintf("\x0a\x0a\x0a\x08%08x", i)...)
	}
	for name, file := range map[string][]byte{
		"empty pieces": empty, "carried": carried(empty, maxSentinels, 1<<20, ""), "distinct": append(smallFile(), distinct...),
		"a long field":   append([]byte("\x0a\xff\xff\xff\xff\x07"), empty...),
		"a map of rules": append(smallFile(), "\x1a\x06\x12\x04\xfc\xff\xff\x7f"...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(file)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(2<<20+200*len(file)); got > most {
			t.Errorf("%s: %d bytes for %d, limit %d (%v)", name, got, len(file), most, err)
		}
		if (err == nil) != (name == "distinct") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

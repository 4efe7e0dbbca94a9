package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// A T5's spiece.model goes into the base as it is, with what the folder says of the
// pieces behind it, and comes out again as the same base. What is in it package
// tokenizer reads; lab/bench/interop holds the ids to sentencepiece's.
func TestLoadBaseCarriesSentencePiece(t *testing.T) {
	spiece := []byte("\x0a\x07\x0a\x05\xe2\x96\x81ab\xff")
	for name, c := range map[string]struct {
		config, added string
		sentinels     int
		want          []addedSpecial
	}{
		"nothing said":  {"", "", 100, nil},
		"few sentinels": {`{"extra_ids": 3, "tokenizer_class": "T5Tokenizer"}`, "", 3, nil},
		"none":          {`{"extra_ids": 0}`, "", 0, nil},
		"added": {`{"added_tokens_decoder": {"7": {"content": "<x>", "special": true}, "1": {"content": "</s>", "special": true},
			"99": {"content": "<extra_id_0>", "special": true}, "98": {"content": "new", "special": false}}}`,
			`{"<x>": 7, "<y>": 6}`, 100, []addedSpecial{{1, "</s>", true}, {6, "<y>", false}, {7, "<x>", true}, {98, "new", false}}},
	} {
		config := huggingConfig("t5") // 20 words
		fsys, _ := huggingFolder(t, config, nil)
		delete(fsys, TokenizerFile)
		fsys[SentencePieceFile] = &fstest.MapFile{Data: spiece}
		for file, text := range map[string]string{TokenizerConfigFile: c.config, AddedTokensFile: c.added} {
			if text != "" {
				fsys[file] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		b, err := LoadBase(fsys)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s, ok := parseSentencePiece(b.Tokenizer)
		if !ok || !bytes.Equal(s.Model.File, spiece) || s.Model.Sentinels != c.sentinels || s.Model.Vocab != 20 {
			t.Errorf("%s: %s", name, b.Tokenizer)
		}
		got, _ := json.Marshal(s.Added)
		if want, _ := json.Marshal(c.want); !bytes.Equal(got, want) {
			t.Errorf("%s: added %s, want %s", name, got, want)
		}
		dir := t.TempDir()
		if err := b.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		again, err := LoadBaseDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Tokenizer, b.Tokenizer) {
			t.Errorf("%s: written, it is %s", name, again.Tokenizer)
		}
	}
}

func TestSentencePieceRefuses(t *testing.T) {
	for want, more := range map[string]fstest.MapFS{
		"AutoTokenizer":        {},
		"added_tokens_decoder": {TokenizerConfigFile: {Data: []byte(`{"added_tokens_decoder": {"x": {}}}`)}, SentencePieceFile: {Data: []byte("x")}},
		TokenizerConfigFile:    {TokenizerConfigFile: {Data: []byte(`{"extra_ids": "many"}`)}, SentencePieceFile: {Data: []byte("x")}},
		AddedTokensFile:        {AddedTokensFile: {Data: []byte(`[]`)}, SentencePieceFile: {Data: []byte("x")}},
		"is larger than":       {SentencePieceFile: {Data: make([]byte, maxJSON)}},
	} {
		fsys, _ := huggingFolder(t, huggingConfig("t5"), nil)
		delete(fsys, TokenizerFile)
		for name, file := range more {
			fsys[name] = file
		}
		if _, err := LoadBase(fsys); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		} else if want == "added_tokens_decoder" && !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v is no ErrConfig", want, err)
		}
	}
}

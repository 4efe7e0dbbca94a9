package model

import (
	"slices"
	"testing"
)

// TestHeavy: a page of a job over a base that its light build does not know loads the full
// one, and no other page does.
func TestHeavy(t *testing.T) {
	light := []string{"bert", "distilbert", "electra", "vit"}
	for name := range architectures {
		if heavy := (Config{ModelType: name}).Heavy(); heavy == slices.Contains(light, name) {
			t.Errorf("%s: heavy is %v", name, heavy)
		}
	}
	if _, known := architectures["llama"]; !known {
		t.Error("this build has no decoders")
	}
}

// A job over a base with such a tokenizer is not one for a page's light build.
func TestHeavyTokenizers(t *testing.T) {
	for file, light := range map[string]bool{
		`{"model":{"type":"WordPiece"},"normalizer":{"type":"BertNormalizer"}}`:  true,
		` {"normalizer":{"type":"BertNormalizer"},"model":{"type":"WordPiece"}}`: true,
		`{"model":{"type":"WordPiece"},"normalizer":{"type":"Sequence"}}`:        false,
		`{"model":{"type":"WordPiece"},"normalizer":null}`:                       false,
		`{"model":{"type":"WordPiece"}}`:                                         false,
		`{"model":{"type":"BPE"},"normalizer":{"type":"BertNormalizer"}}`:        false,
		`{"model":{"type":"BPE","byte_fallback":true}}`:                          false,
		`{"model":{"type":"Unigram"}}`:                                           false,
		`{"model":{"type":"SentencePiece"}}`:                                     false,
		`{"model":{"type":"WordPiece"`:                                           false,
		"\x0a\x0eSentencePiece's own":                                            false,
		"":                                                                       false,
	} {
		b := Base{Config: Config{ModelType: "bert"}, Tokenizer: []byte(file)}
		if b.Heavy() == light {
			t.Errorf("%q: heavy is %v", file, !light)
		}
	}
}

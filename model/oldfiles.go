package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Files that hold a tokenizer in checkpoints older than tokenizer.json.
const (
	VocabFile           = "vocab.txt"  // WordPiece: a piece a line
	PairsFile           = "vocab.json" // byte-level BPE: ids by piece
	MergesFile          = "merges.txt" // its merges, a pair a line
	TokenizerConfigFile = "tokenizer_config.json"
	AddedTokensFile     = "added_tokens.json"
)

// oldTokenizer is the tokenizer.json of a folder that has none and was saved by
// transformers' Python tokenizers, as its fast ones read it: of a BERT's and a
// DistilBERT's vocab.txt, of a RoBERTa's vocab.json and merges.txt, or what carries a T5's
// spiece.model. fs.ErrNotExist where these are missing too.
func (c Config) oldTokenizer(fsys fs.FS) ([]byte, error) {
	if f := c.folder().old; f != nil {
		return f(c, fsys)
	}
	read := c.folder().vocabulary
	if read == nil {
		return nil, fs.ErrNotExist
	}
	var added map[string]int
	if err := optionalJSON(fsys, AddedTokensFile, &added); err != nil {
		return nil, err
	}
	ids, file, err := read(fsys)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(added) {
		if _, there := ids[name]; !there {
			return nil, fmt.Errorf("%w: %s adds %.40q, which needs a %s", ErrConfig, AddedTokensFile, name, TokenizerFile)
		}
	}
	return json.Marshal(file) // maps are written in key order
}

// optionalJSON leaves v as it is where there is no such file.
func optionalJSON(fsys fs.FS, name string, v any) error {
	data, err := ReadFile(fsys, name, maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrConfig, name, err)
	}
	return nil
}

// wordPieceFile is made of a vocab.txt. A special token that is missing in it is told by
// anyone who reads the result.
func wordPieceFile(fsys fs.FS) (ids map[string]int, file map[string]any, err error) {
	var o struct {
		Lower   *bool `json:"do_lower_case"`
		Strip   *bool `json:"strip_accents"`
		Chinese *bool `json:"tokenize_chinese_chars"`
	}
	if err := optionalJSON(fsys, TokenizerConfigFile, &o); err != nil {
		return nil, nil, err
	}
	or := func(b *bool) bool { return b == nil || *b }
	data, err := ReadFile(fsys, VocabFile, maxJSON)
	if err != nil {
		return nil, nil, err
	}
	ids = map[string]int{}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		piece := strings.TrimSuffix(line, "\r")
		if before, twice := ids[piece]; twice {
			return nil, nil, fmt.Errorf("%w: %s: line %d is that of line %d, %.40q", ErrConfig, VocabFile, i+1, before+1, piece)
		}
		ids[piece] = i
	}
	pair := func(name string) []any { return []any{name, ids[name]} }
	return ids, map[string]any{
		"version": "1.0", "pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
		"normalizer": map[string]any{"type": "BertNormalizer", "clean_text": true,
			"handle_chinese_chars": or(o.Chinese), "strip_accents": o.Strip, "lowercase": or(o.Lower)},
		"added_tokens":   special(ids, "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
		"post_processor": map[string]any{"type": "BertProcessing", "sep": pair("[SEP]"), "cls": pair("[CLS]")},
		"decoder":        map[string]any{"type": "WordPiece", "prefix": "##", "cleanup": true},
		"model": map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
			"max_input_chars_per_word": 100, "vocab": ids},
	}, nil
}

// bytePairFile is made of a vocab.json and a merges.txt.
func bytePairFile(fsys fs.FS) (ids map[string]int, file map[string]any, err error) {
	var o struct {
		Prefix bool `json:"add_prefix_space"`
	}
	if err := optionalJSON(fsys, TokenizerConfigFile, &o); err != nil {
		return nil, nil, err
	}
	data, err := ReadFile(fsys, PairsFile, maxJSON)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(data, &ids); err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrConfig, PairsFile, err)
	}
	text, err := ReadFile(fsys, MergesFile, maxJSON)
	if err != nil {
		return nil, nil, err
	}
	merges := []string{}
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimRight(line, "\r")
		if len(line) == 0 || i == 0 && bytes.HasPrefix(line, []byte("#version")) {
			continue
		}
		merges = append(merges, string(line))
	}
	pair := func(name string) []any { return []any{name, ids[name]} }
	bytesOf := map[string]any{"type": "ByteLevel", "add_prefix_space": o.Prefix, "trim_offsets": true, "use_regex": true}
	return ids, map[string]any{
		"version": "1.0", "normalizer": nil, "pre_tokenizer": bytesOf, "decoder": bytesOf,
		"added_tokens": special(ids, "<s>", "<pad>", "</s>", "<unk>", "<mask>"),
		"post_processor": map[string]any{"type": "RobertaProcessing", "sep": pair("</s>"), "cls": pair("<s>"),
			"trim_offsets": true, "add_prefix_space": o.Prefix},
		"model": map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "",
			"end_of_word_suffix": "", "fuse_unk": false, "vocab": ids, "merges": merges},
	}, nil
}

// special lists the special tokens that a vocabulary has; RoBERTa's mask takes the spaces
// before it.
func special(ids map[string]int, names ...string) []map[string]any {
	tokens := []map[string]any{}
	for _, name := range names {
		if id, ok := ids[name]; ok {
			tokens = append(tokens, map[string]any{"id": id, "content": name, "single_word": false, "lstrip": name == "<mask>",
				"rstrip": false, "normalized": false, "special": true})
		}
	}
	return tokens
}

package model

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
)

// SentencePieceFile holds the tokenizer of a T5 without tokenizer.json.
const SentencePieceFile = "spiece.model"

// sentencePieceKind is the kind of tokenizer that such a file becomes: no other program
// reads it, and what is written for others is the file again.
const sentencePieceKind = "SentencePiece"

// sentencePiece carries SentencePiece's own file, as it is, where a base has a
// tokenizer.json, with what T5Tokenizer puts behind its pieces: the sentinels that
// extra_ids counts, and added tokens. Package tokenizer reads it.
type sentencePiece struct {
	Version string         `json:"version"`
	Added   []addedSpecial `json:"added_tokens,omitempty"`
	Model   struct {
		Type      string `json:"type"`
		File      []byte `json:"file"`
		Sentinels int    `json:"extra_ids"`
		Vocab     int    `json:"vocab_size"`
	} `json:"model"`
}

type addedSpecial struct {
	ID      int    `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`
}

// sentencePieceTokenizer reads a T5's spiece.model, and tokenizer_config.json and
// added_tokens.json beside it.
func (c Config) sentencePieceTokenizer(fsys fs.FS) ([]byte, error) {
	file, err := ReadFile(fsys, SentencePieceFile, maxJSON/2)
	if err != nil {
		return nil, err
	}
	o := struct {
		Sentinels int                     `json:"extra_ids"`
		Decoder   map[string]addedSpecial `json:"added_tokens_decoder"`
	}{Sentinels: 100} // T5Tokenizer's
	if err := optionalJSON(fsys, TokenizerConfigFile, &o); err != nil {
		return nil, err
	}
	var ids map[string]int
	if err := optionalJSON(fsys, AddedTokensFile, &ids); err != nil {
		return nil, err
	}
	added := map[int]addedSpecial{}
	for name, id := range ids {
		added[id] = addedSpecial{ID: id, Content: name}
	}
	for key, t := range o.Decoder { // says which are special, too
		if t.ID, err = strconv.Atoi(key); err != nil {
			return nil, fmt.Errorf("%w: %s: added_tokens_decoder has a token %.40q, want its id", ErrConfig, TokenizerConfigFile, key)
		}
		added[t.ID] = t
	}
	s := sentencePiece{Version: "1.0"}
	for _, id := range slices.Sorted(maps.Keys(added)) {
		if t := added[id]; id < c.VocabSize || !t.Special { // what the model has no embedding for is never used
			s.Added = append(s.Added, t)
		}
	}
	s.Model.Type, s.Model.File, s.Model.Sentinels, s.Model.Vocab = sentencePieceKind, file, o.Sentinels, c.VocabSize
	return json.Marshal(s)
}

// parseSentencePiece reports whether a base's tokenizer is such a file.
func parseSentencePiece(tokenizer []byte) (sentencePiece, bool) {
	var s sentencePiece
	return s, json.Unmarshal(tokenizer, &s) == nil && s.Model.Type == sentencePieceKind
}

// describe adds to a tokenizer_config.json what LoadBase, and transformers' T5Tokenizer,
// need of it to have the same tokenizer.
func (s sentencePiece) describe(out map[string]any) {
	out["tokenizer_class"], out["extra_ids"] = "T5Tokenizer", s.Model.Sentinels
	decoder := map[string]any{}
	for _, t := range s.Added {
		decoder[strconv.Itoa(t.ID)] = map[string]any{"content": t.Content, "special": t.Special, "lstrip": false, "rstrip": false,
			"normalized": false, "single_word": false}
	}
	if len(decoder) > 0 {
		out["added_tokens_decoder"] = decoder
	}
}

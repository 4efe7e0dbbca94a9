package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// characterKeys are those of a Wav2Vec2CTCTokenizer's tokenizer_config.json, with what the
// class takes where the file has none.
var characterKeys = map[string]any{
	"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>",
	"word_delimiter_token": "|", "replace_word_delimiter_char": " ", "do_lower_case": false,
}

const (
	characterVocab  = "vocab" // of PairsFile, beside characterKeys in what a base carries
	maxSpeechOutput = 1 << 14 // characters
)

// readCharacters makes what a base of recordings carries for its tokenizer of a folder's
// vocab.json, tokenizer_config.json and added_tokens.json: their keys in one object, nil where
// there is no vocabulary. The base's vocab_size and its blank follow from it.
func (c *Config) readCharacters(fsys fs.FS) ([]byte, error) {
	each := map[string]json.RawMessage{}
	if err := optionalJSON(fsys, PairsFile, &each); err != nil || len(each) == 0 {
		return nil, err
	}
	vocab := map[string]int{}
	for piece, raw := range each {
		if bytes.HasPrefix(raw, []byte("{")) {
			return nil, nil // a vocabulary for each of several languages: none of them is the base's own
		}
		var id int
		if err := json.Unmarshal(raw, &id); err != nil {
			return nil, fmt.Errorf("%w: %s: %.40q: %w", ErrConfig, PairsFile, piece, err)
		}
		vocab[piece] = id
	}
	var added map[string]int
	if err := optionalJSON(fsys, AddedTokensFile, &added); err != nil {
		return nil, err
	}
	for token, id := range added {
		if at, there := vocab[token]; there && at != id {
			return nil, fmt.Errorf("%w: %s has %.40q at %d, and %s at %d", ErrConfig, AddedTokensFile, token, id, PairsFile, at)
		}
		vocab[token] = id
	}
	given := map[string]json.RawMessage{}
	if err := optionalJSON(fsys, TokenizerConfigFile, &given); err != nil {
		return nil, err
	}
	doc := maps.Clone(characterKeys)
	for key, standard := range characterKeys {
		raw, there := given[key]
		if !there || string(raw) == "null" {
			continue
		}
		value, err := characterValue(raw, standard)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %s: %w", ErrConfig, TokenizerConfigFile, key, err)
		}
		doc[key] = value
	}
	doc[characterVocab] = vocab
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return text, c.settleCharacters(fsys, vocab, doc["pad_token"].(string))
}

// characterValue is a key's value: a truth, or a text, which transformers may write as an
// object that has it.
func characterValue(raw json.RawMessage, standard any) (any, error) {
	if _, truth := standard.(bool); truth {
		var b bool
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, fmt.Errorf("want true or false: %w", err)
		}
		return b, nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var token struct {
		Content *string `json:"content"`
	}
	if json.Unmarshal(raw, &token) != nil || token.Content == nil {
		return nil, errors.New("want a text")
	}
	return *token.Content, nil
}

// settleCharacters gives the configuration as many outputs as there are characters, or as
// config.json says, and the blank.
func (c *Config) settleCharacters(fsys fs.FS, vocab map[string]int, blank string) error {
	var theirs struct {
		Classes []string `json:"architectures"`
		Vocab   int      `json:"vocab_size"`
		Pad     *int     `json:"pad_token_id"`
	}
	if err := optionalJSON(fsys, ConfigFile, &theirs); err != nil {
		return err
	}
	at, there := vocab[blank]
	if !there {
		return fmt.Errorf("%w: %s has no %.40q, which pad_token says is the blank", ErrConfig, PairsFile, blank)
	}
	c.VocabSize, c.PadTokenID = 0, at
	for _, id := range vocab {
		c.VocabSize = max(c.VocabSize, id+1)
	}
	switch headed := slices.Contains(theirs.Classes, c.arch().class+transcribeTask.class); {
	case headed && theirs.Vocab < c.VocabSize:
		return fmt.Errorf("%w: config.json: vocab_size is %d, and %s has the id %d", ErrConfig, theirs.Vocab, PairsFile, c.VocabSize-1)
	case headed && theirs.Pad != nil && *theirs.Pad != at:
		return fmt.Errorf("%w: config.json: pad_token_id is %d, and %s has the blank %.40q at %d", ErrConfig, *theirs.Pad, PairsFile, blank, at)
	}
	c.VocabSize = max(c.VocabSize, theirs.Vocab) // a head may have outputs that no character has
	return c.Validate()
}

// characterFiles are the files that a base's characters came from, as transformers reads them.
func characterFiles(characters []byte) (map[string][]byte, error) {
	doc := map[string]any{}
	if err := json.Unmarshal(characters, &doc); err != nil {
		return nil, fmt.Errorf("%w: the base's characters: %w", ErrConfig, err)
	}
	vocab, err := marshalFile(doc[characterVocab])
	if err != nil {
		return nil, err
	}
	delete(doc, characterVocab)
	doc["tokenizer_class"] = "Wav2Vec2CTCTokenizer"
	keys, err := marshalFile(doc)
	return map[string][]byte{PairsFile: vocab, TokenizerConfigFile: keys}, err
}

// WithCharacters gives a configuration of recordings the characters of texts to write, in addition
// to the blank, the unknown one and the word separator; what a base of it carries for its
// tokenizer.
func (c *Config) WithCharacters(texts []string) ([]byte, error) {
	letters := map[rune]bool{}
	for _, t := range texts {
		for _, r := range t {
			letters[r] = true
		}
	}
	delete(letters, ' ')
	delete(letters, '|')
	pieces := []string{"<pad>", "<unk>", "|"}
	for _, r := range slices.Sorted(maps.Keys(letters)) {
		pieces = append(pieces, string(r))
	}
	if len(pieces) > maxSpeechOutput {
		return nil, fmt.Errorf("%w: the texts have %d characters, the limit is %d", ErrConfig, len(pieces), maxSpeechOutput)
	}
	vocab := map[string]int{}
	for id, piece := range pieces {
		vocab[piece] = id
	}
	doc := maps.Clone(characterKeys)
	doc[characterVocab] = vocab
	c.VocabSize, c.PadTokenID = len(pieces), 0
	return json.Marshal(doc)
}

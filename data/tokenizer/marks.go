//go:build !js || full

package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
)

// Marks encodes texts that spell special tokens out, as chat templates write them. It finds each
// wherever it stands, as transformers' fast tokenizers do.
type Marks struct {
	tokens *textTokens
	parts  split
}

// NewMarks takes a tokenizer and the tokenizer.json that it was parsed from.
func NewMarks(data []byte, t Tokenizer) (*Marks, error) {
	var d struct {
		AddedTokens []addedToken `json:"added_tokens"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrVocab, err)
	}
	m := &Marks{}
	switch t := t.(type) {
	case *BytePair:
		m.parts = t
	case *Unigram:
		words, ok := t.parts.(*metaspace)
		if !ok {
			return nil, fmt.Errorf("%w: special tokens are not found in texts of this Unigram model", ErrVocab)
		}
		m.parts = unigramSplit{t, words}
	default:
		return nil, fmt.Errorf("%w: special tokens are found in texts of BPE and Unigram models alone", ErrVocab)
	}
	var err error
	m.tokens, err = findTokens(d.AddedTokens, m.parts, true)
	return m, err
}

// Encode returns the ids of a text, special tokens that it spells among them.
func (m *Marks) Encode(text string) []int32 { return m.tokens.encode(m.parts, text, math.MaxInt32) }

package tokenizer

import (
	"encoding/json"
	"fmt"
)

// document is the part of Hugging Face's tokenizer.json that says what a BERT
// tokenizer does. Fields that would change the ids are read so that they can
// be refused.
type document struct {
	Version     string         `json:"version"`
	Truncation  any            `json:"truncation"`
	Padding     any            `json:"padding"`
	AddedTokens []addedToken   `json:"added_tokens"`
	Normalizer  *normalizer    `json:"normalizer"`
	PreTok      *typed         `json:"pre_tokenizer"`
	PostProc    *postProcessor `json:"post_processor"`
	Decoder     *decoder       `json:"decoder"`
	Model       wordPieceModel `json:"model"`
}

type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type typed struct {
	Type string `json:"type"`
}

type normalizer struct {
	Type               string `json:"type"`
	CleanText          bool   `json:"clean_text"`
	HandleChineseChars bool   `json:"handle_chinese_chars"`
	StripAccents       *bool  `json:"strip_accents"`
	Lowercase          bool   `json:"lowercase"`
}

type postProcessor struct {
	Type string `json:"type"`
	Sep  []any  `json:"sep,omitempty"`
	Cls  []any  `json:"cls,omitempty"`
}

type decoder struct {
	Type    string `json:"type"`
	Prefix  string `json:"prefix"`
	Cleanup bool   `json:"cleanup"`
}

type wordPieceModel struct {
	Type         string           `json:"type"`
	UnkToken     string           `json:"unk_token"`
	Continuation string           `json:"continuing_subword_prefix"`
	MaxRunes     int              `json:"max_input_chars_per_word"`
	Vocab        map[string]int32 `json:"vocab"`
}

// Parse reads a Hugging Face tokenizer.json that holds an uncased BERT
// WordPiece model. At most 64 MiB and 2^20 pieces are accepted; errors wrap
// ErrVocab and name the field.
func Parse(data []byte) (*WordPiece, error) {
	if len(data) > maxParsedBytes {
		return nil, fmt.Errorf("%w: tokenizer.json has %d bytes, the limit is %d", ErrVocab, len(data), maxParsedBytes)
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrVocab, err)
	}
	m := d.Model
	switch {
	case m.Type != "WordPiece":
		return nil, fmt.Errorf("%w: model.type is %q, only WordPiece is read", ErrVocab, m.Type)
	case m.Continuation != continuation:
		return nil, fmt.Errorf("%w: model.continuing_subword_prefix is %q, want %q", ErrVocab, m.Continuation, continuation)
	case m.UnkToken != Unknown:
		return nil, fmt.Errorf("%w: model.unk_token is %q, want %q", ErrVocab, m.UnkToken, Unknown)
	case m.MaxRunes != maxWordRunes:
		return nil, fmt.Errorf("%w: model.max_input_chars_per_word is %d, want %d", ErrVocab, m.MaxRunes, maxWordRunes)
	case d.Normalizer == nil || d.Normalizer.Type != "BertNormalizer" || !d.Normalizer.Lowercase || !d.Normalizer.CleanText:
		return nil, fmt.Errorf("%w: normalizer must be BertNormalizer with clean_text and lowercase", ErrVocab)
	case d.Normalizer.StripAccents != nil && !*d.Normalizer.StripAccents:
		return nil, fmt.Errorf("%w: normalizer.strip_accents must not be false", ErrVocab)
	case d.PreTok == nil || d.PreTok.Type != "BertPreTokenizer":
		return nil, fmt.Errorf("%w: pre_tokenizer must be BertPreTokenizer", ErrVocab)
	}
	pieces := make([]string, len(m.Vocab))
	for p, id := range m.Vocab {
		if id < 0 || int(id) >= len(pieces) || pieces[id] != "" {
			return nil, fmt.Errorf("%w: model.vocab: id %d of %.40q is out of 0..%d or used twice", ErrVocab, id, p, len(pieces)-1)
		}
		pieces[id] = p
	}
	return FromVocab(pieces)
}

// MarshalJSON writes the tokenizer as a Hugging Face tokenizer.json. Equal
// tokenizers give equal bytes.
func (t *WordPiece) MarshalJSON() ([]byte, error) {
	d := document{
		Version:    "1.0",
		Normalizer: &normalizer{Type: "BertNormalizer", CleanText: true, HandleChineseChars: true, Lowercase: true},
		PreTok:     &typed{Type: "BertPreTokenizer"},
		PostProc:   &postProcessor{Type: "BertProcessing", Sep: []any{Sep, t.sep}, Cls: []any{Cls, t.cls}},
		Decoder:    &decoder{Type: "WordPiece", Prefix: continuation, Cleanup: true},
		Model: wordPieceModel{
			Type: "WordPiece", UnkToken: Unknown, Continuation: continuation,
			MaxRunes: maxWordRunes, Vocab: t.ids,
		},
	}
	for _, s := range specials {
		d.AddedTokens = append(d.AddedTokens, addedToken{ID: t.ids[s], Content: s, Special: true})
	}
	return json.Marshal(d) // maps are written in key order
}

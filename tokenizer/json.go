package tokenizer

import (
	"encoding/json"
	"fmt"
)

// document is the part of Hugging Face's tokenizer.json that a WordPiece one needs.
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

// parseJSON reads a tokenizer.json by the kind of its model.
func parseJSON(data []byte) (Tokenizer, error) {
	var kind struct {
		Model typed `json:"model"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrVocab, err)
	}
	switch kind.Model.Type {
	case "WordPiece":
		return parseWordPiece(data)
	case "BPE":
		return parseBytePair(data)
	case "Unigram":
		return parseUnigram(data)
	case "SentencePiece":
		return parseSentencePieceJSON(data)
	}
	return nil, fmt.Errorf("%w: model.type is %.40q, want WordPiece, BPE or Unigram", ErrVocab, kind.Model.Type)
}

func parseWordPiece(data []byte) (*WordPiece, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrVocab, err)
	}
	m := d.Model
	switch {
	case m.Continuation != continuation:
		return nil, fmt.Errorf("%w: model.continuing_subword_prefix is %q, want %q", ErrVocab, m.Continuation, continuation)
	case m.UnkToken != Unknown:
		return nil, fmt.Errorf("%w: model.unk_token is %q, want %q", ErrVocab, m.UnkToken, Unknown)
	case m.MaxRunes != maxWordRunes:
		return nil, fmt.Errorf("%w: model.max_input_chars_per_word is %d, want %d", ErrVocab, m.MaxRunes, maxWordRunes)
	case d.Normalizer == nil || d.Normalizer.Type != "BertNormalizer" || !d.Normalizer.CleanText || !d.Normalizer.HandleChineseChars:
		return nil, fmt.Errorf("%w: normalizer must be BertNormalizer with clean_text and handle_chinese_chars", ErrVocab)
	case d.Normalizer.StripAccents != nil && *d.Normalizer.StripAccents != d.Normalizer.Lowercase:
		return nil, fmt.Errorf("%w: normalizer.strip_accents must be null or what lowercase is", ErrVocab)
	case d.PreTok == nil || d.PreTok.Type != "BertPreTokenizer":
		return nil, fmt.Errorf("%w: pre_tokenizer must be BertPreTokenizer", ErrVocab)
	}
	if err := onlySpecial(d.AddedTokens); err != nil {
		return nil, err
	}
	pieces := make([]string, len(m.Vocab))
	for p, id := range m.Vocab {
		if id < 0 || int(id) >= len(pieces) || pieces[id] != "" {
			return nil, fmt.Errorf("%w: model.vocab: id %d of %.40q is out of 0..%d or used twice", ErrVocab, id, p, len(pieces)-1)
		}
		pieces[id] = p
	}
	t, err := FromVocab(pieces)
	if err != nil {
		return nil, err
	}
	t.cased = !d.Normalizer.Lowercase
	return t, nil
}

// MarshalJSON writes the tokenizer as a Hugging Face tokenizer.json. Equal
// tokenizers give equal bytes.
func (t *WordPiece) MarshalJSON() ([]byte, error) {
	d := document{
		Version:    "1.0",
		Normalizer: &normalizer{Type: "BertNormalizer", CleanText: true, HandleChineseChars: true, Lowercase: !t.cased},
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

package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
)

// document is the part of Hugging Face's tokenizer.json that a WordPiece one needs.
type document struct {
	Version     string          `json:"version"`
	Truncation  any             `json:"truncation"`
	Padding     any             `json:"padding"`
	AddedTokens []addedToken    `json:"added_tokens"`
	Normalizer  json.RawMessage `json:"normalizer"`
	PreTok      *typed          `json:"pre_tokenizer"`
	PostProc    *postProcessor  `json:"post_processor"`
	Decoder     *decoder        `json:"decoder"`
	Model       wordPieceModel  `json:"model"`
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

// What a tokenizer of BERT's has.
const (
	wordPieceKind  = "WordPiece"
	bertNormalizer = "BertNormalizer"
)

func readKind(data []byte) (typed, error) {
	var file struct {
		Model typed `json:"model"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return file.Model, fmt.Errorf("%w: tokenizer.json: %w", ErrVocab, err)
	}
	return file.Model, nil
}

// parseJSON reads a tokenizer.json by the kind of its model.
func parseJSON(data []byte) (Tokenizer, error) {
	kind, err := readKind(data)
	switch {
	case err != nil:
		return nil, err
	case kind.Type == wordPieceKind:
		return parseWordPiece(data)
	}
	return parseFull(kind, data)
}

// addTokens appends the pieces that lie behind the vocabulary, which no word becomes.
func (t *WordPiece) addTokens(added []addedToken) error {
	t.pieces = slices.Clone(t.pieces)
	for _, a := range added {
		id, known := t.ids[a.Content]
		switch {
		case known && id != a.ID:
			return fmt.Errorf("%w: added_tokens gives %.40q the id %d, the vocabulary %d", ErrVocab, a.Content, a.ID, id)
		case known:
		case a.Content == "" || len(a.Content) > maxPieceBytes || int(a.ID) != len(t.pieces) || len(t.pieces) >= maxVocab:
			return fmt.Errorf("%w: added_tokens has %.40q at %d, want 1..%d bytes at %d, which is the next id, below %d", ErrVocab,
				a.Content, a.ID, maxPieceBytes, len(t.pieces), maxVocab)
		default:
			t.pieces = append(t.pieces, a.Content)
		}
		if !slices.Contains(specials, a.Content) {
			t.added = append(t.added, a)
		}
	}
	return nil
}

// parseFold reads a BertNormalizer, by itself or as the last of a Sequence, or other
// normalizers without one.
func parseFold(raw json.RawMessage) (f fold, err error) {
	var d struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if err := json.Unmarshal(orNull(raw), &d); err != nil {
		return f, fmt.Errorf("%w: normalizer: %w", ErrVocab, err)
	}
	last := raw
	if d.Type == "Sequence" && len(d.Normalizers) > 0 {
		last = d.Normalizers[len(d.Normalizers)-1]
	}
	n := normalizer{CleanText: true, HandleChineseChars: true, Lowercase: true}
	if err := json.Unmarshal(orNull(last), &n); err != nil {
		return f, fmt.Errorf("%w: normalizer: %w", ErrVocab, err)
	}
	before := raw
	if n.Type == bertNormalizer {
		f.clean, f.chinese, f.lower, f.accents = n.CleanText, n.HandleChineseChars, n.Lowercase, n.Lowercase
		if n.StripAccents != nil {
			f.accents = *n.StripAccents
		}
		if d.Type != "Sequence" {
			return f, nil
		}
		if before, err = json.Marshal(map[string]any{"type": "Sequence", "normalizers": d.Normalizers[:len(d.Normalizers)-1]}); err != nil {
			return f, err
		}
	}
	f.before, err = parseBefore(before)
	return f, err
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
	t, err := FromVocab(pieces)
	if err != nil {
		return nil, err
	}
	if t.fold, err = parseFold(d.Normalizer); err != nil {
		return nil, err
	}
	if f := t.fold; len(f.before) > 0 || !f.clean || !f.chinese || !f.lower || !f.accents {
		t.file = d.Normalizer
	}
	if err := t.addTokens(d.AddedTokens); err != nil {
		return nil, err
	}
	t.texts, err = newTextTokens(d.AddedTokens, t)
	return t, err
}

// MarshalJSON writes the tokenizer as a Hugging Face tokenizer.json. Equal
// tokenizers give equal bytes.
func (t *WordPiece) MarshalJSON() ([]byte, error) {
	file := t.file
	if file == nil {
		var err error
		if file, err = json.Marshal(normalizer{Type: bertNormalizer, CleanText: true, HandleChineseChars: true, Lowercase: true}); err != nil {
			return nil, err
		}
	}
	d := document{
		Version:    "1.0",
		Normalizer: file,
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
	d.AddedTokens = append(d.AddedTokens, t.added...)
	return json.Marshal(d) // maps are written in key order
}

func orNull(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// FallbackPair is SentencePiece's BPE as Llama 2 and Gemma have it in a tokenizer.json: spaces
// are ▁, a text is one word, each character is a symbol, and one that the vocabulary lacks
// is its bytes. Every text is covered.
type FallbackPair struct {
	frame
	pieces  []string
	ids     map[string]int32
	bytes   [256]int32
	merges  map[[2]int32]merge
	unknown int32
	prefix  bool // a ▁ is put before a text
	texts   *textTokens
}

// parseFallbackPair reads a BPE whose byte_fallback is true.
func parseFallbackPair(data []byte) (*FallbackPair, error) {
	var d struct {
		framing
		Normalizer *replacing `json:"normalizer"`
		PreTok     *struct {
			Type    string `json:"type"`
			Pattern struct {
				Text string `json:"String"`
			} `json:"pattern"`
			Behavior string `json:"behavior"`
			Invert   bool   `json:"invert"`
		} `json:"pre_tokenizer"`
		Model bytePairModel `json:"model"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrVocab, err)
	}
	set := func(s *string) bool { return s != nil && *s != "" }
	m := d.Model
	prefix, ok := d.Normalizer.spaces()
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: normalizer of a BPE with byte_fallback must put %s for spaces, and may put one before the text (Prepend)", ErrVocab, space)
	// Gemma's splits at spaces, of which none is left.
	case d.PreTok != nil && (d.PreTok.Type != "Split" || d.PreTok.Pattern.Text != " " || d.PreTok.Behavior != "MergedWithPrevious" || d.PreTok.Invert):
		return nil, fmt.Errorf("%w: pre_tokenizer is %.40q, want none of a BPE with byte_fallback, or a Split at spaces", ErrVocab, d.PreTok.Type)
	case set(m.Prefix) || set(m.Suffix) || m.IgnoreMerges || m.Dropout != nil && *m.Dropout != 0:
		return nil, fmt.Errorf("%w: model.continuing_subword_prefix, end_of_word_suffix, ignore_merges and dropout are not supported with byte_fallback", ErrVocab)
	case len(m.Merges) > maxVocab:
		return nil, fmt.Errorf("%w: %d merges, the limit is %d", ErrVocab, len(m.Merges), maxVocab)
	}
	pieces, err := vocabulary(m.Vocab, d.AddedTokens)
	if err != nil {
		return nil, err
	}
	t := &FallbackPair{pieces: pieces, ids: m.Vocab, unknown: -1, prefix: prefix}
	if t.frame, err = d.parse(len(pieces)); err != nil {
		return nil, err
	}
	if m.Unk != nil {
		if t.unknown, ok = m.Vocab[*m.Unk]; !ok {
			return nil, fmt.Errorf("%w: model.unk_token %.40q is not in the vocabulary", ErrVocab, *m.Unk)
		}
	}
	for b := range t.bytes {
		if t.bytes[b], ok = m.Vocab[fmt.Sprintf("<0x%02X>", b)]; !ok {
			return nil, fmt.Errorf("%w: the vocabulary has no piece for byte 0x%02X", ErrVocab, b)
		}
	}
	if t.merges, err = m.learned(); err != nil {
		return nil, err
	}
	t.texts, err = newTextTokens(d.AddedTokens, t)
	return t, err
}

// replacing is a normalizer that puts ▁ for spaces, or a sequence of some.
type replacing struct {
	Type    string `json:"type"`
	Prepend string `json:"prepend"`
	Pattern struct {
		Text string `json:"String"`
	} `json:"pattern"`
	Content string      `json:"content"`
	List    []replacing `json:"normalizers"`
}

// spaces reports whether it does that and no more, and whether it puts one before a text.
func (r *replacing) spaces() (prefix, ok bool) {
	if r == nil {
		return false, false
	}
	list := []replacing{*r}
	if r.Type == "Sequence" {
		list = r.List
	}
	if len(list) == 2 && list[0].Type == "Prepend" && list[0].Prepend == space {
		prefix, list = true, list[1:]
	}
	return prefix, len(list) == 1 && list[0].Type == "Replace" && list[0].Pattern.Text == " " && list[0].Content == space
}

// VocabSize implements Tokenizer.
func (t *FallbackPair) VocabSize() int { return len(t.pieces) }

// PadID implements Tokenizer.
func (t *FallbackPair) PadID() int32 { return t.pad }

// UnknownID is the id of unk_token, which no text has; -1 if there is none.
func (t *FallbackPair) UnknownID() int32 { return t.unknown }

// Piece implements Tokenizer; an id outside the vocabulary is "".
func (t *FallbackPair) Piece(id int32) string {
	if id < 0 || int(id) >= len(t.pieces) {
		return ""
	}
	return t.pieces[id]
}

// Encode implements Tokenizer.
func (t *FallbackPair) Encode(text string) []int32 { return t.encode(text, math.MaxInt32) }

// EncodeFixed implements Tokenizer.
func (t *FallbackPair) EncodeFixed(text string, seq int) []int32 {
	return t.fixed(seq, func(limit int) []int32 { return t.encode(text, limit) })
}

func (t *FallbackPair) encode(text string, limit int) []int32 {
	if t.texts != nil {
		return t.texts.encode(t, text, limit)
	}
	return t.appendPart(nil, t.normalized(strings.ToValidUTF8(text, "\uFFFD")), true, limit)
}

func (t *FallbackPair) normalized(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ReplaceAll(text, " ", space)
	if t.prefix {
		text = space + text
	}
	return text
}

// appendPart appends the ids of text that is normalized, which is one word.
func (t *FallbackPair) appendPart(ids []int32, text string, _ bool, _ int) []int32 {
	if text == "" {
		return ids
	}
	return mergeAll(t.merges, ids, text, func(ids []int32) []int32 {
		for _, r := range text {
			if id, ok := t.ids[string(r)]; ok {
				ids = append(ids, id)
				continue
			}
			for _, b := range []byte(string(r)) {
				ids = append(ids, t.bytes[b])
			}
		}
		return ids
	})
}

// Decode implements Tokenizer.
func (t *FallbackPair) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if t.special(id) {
			continue
		}
		piece := t.Piece(id)
		if x := hexByte(piece); len(piece) == len("<0x00>") && id == t.bytes[x] {
			b.WriteByte(x)
			continue
		}
		b.WriteString(strings.ReplaceAll(piece, space, " "))
	}
	if t.prefix {
		return strings.TrimPrefix(b.String(), " ")
	}
	return b.String()
}

// hexByte is the byte that a piece like <0x0A> names, or 0.
func hexByte(piece string) (x byte) {
	_, _ = fmt.Sscanf(piece, "<0x%02X>", &x)
	return x
}

package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// BytePair is byte-level BPE as GPT-2 and RoBERTa have it (Radford et al. 2019), and
// Llama 3, Qwen 2 and SmolLM with patterns of their own: text is split into words with
// their leading space, each byte is a symbol, and the adjacent pair whose merge was
// learned first is merged until none is left. Every text is covered.
type BytePair struct {
	frame
	pieces  []string // by id, in the alphabet that stands for bytes
	bytes   [256]int32
	merges  map[[2]int32]merge
	whole   map[string]int32 // words that are pieces as they are, whatever the merges; nil: see ignore_merges
	words   splitter
	unknown int32
	normal  steps
	texts   *textTokens
	prefix  bool // a text without a leading space is given one
}

// merge is what a pair of ids becomes, and when it was learned: earlier goes first.
type merge struct{ rank, id int32 }

type bytePairModel struct {
	Unk          *string           `json:"unk_token"`
	Prefix       *string           `json:"continuing_subword_prefix"`
	Suffix       *string           `json:"end_of_word_suffix"`
	Dropout      *float64          `json:"dropout"`
	ByteFallback bool              `json:"byte_fallback"`
	IgnoreMerges bool              `json:"ignore_merges"`
	Vocab        map[string]int32  `json:"vocab"`
	Merges       []json.RawMessage `json:"merges"` // "a b" or ["a", "b"]
}

func parseBytePair(data []byte) (*BytePair, error) {
	var d struct {
		framing
		Normalizer json.RawMessage `json:"normalizer"`
		PreTok     *preTokenizer   `json:"pre_tokenizer"`
		Model      bytePairModel   `json:"model"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrVocab, err)
	}
	set := func(s *string) bool { return s != nil && *s != "" }
	m := d.Model
	words, prefix, err := d.PreTok.splitter()
	switch {
	case err != nil:
		return nil, err
	case set(m.Prefix) || set(m.Suffix):
		return nil, fmt.Errorf("%w: model.continuing_subword_prefix and end_of_word_suffix must be empty", ErrVocab)
	case m.ByteFallback || m.Dropout != nil && *m.Dropout != 0:
		return nil, fmt.Errorf("%w: model.byte_fallback and dropout are not supported of a byte-level model", ErrVocab)
	case len(m.Merges) > maxVocab:
		return nil, fmt.Errorf("%w: %d merges, the limit is %d", ErrVocab, len(m.Merges), maxVocab)
	}
	pieces, err := vocabulary(m.Vocab, d.AddedTokens)
	if err != nil {
		return nil, err
	}
	t := &BytePair{pieces: pieces, unknown: -1, words: words, prefix: prefix}
	if t.frame, err = d.parse(len(pieces)); err != nil {
		return nil, err
	}
	if t.normal, _, err = parseSteps(d.Normalizer); err != nil {
		return nil, err
	}
	if m.Unk != nil {
		id, ok := m.Vocab[*m.Unk]
		if !ok {
			return nil, fmt.Errorf("%w: model.unk_token %.40q is not in the vocabulary", ErrVocab, *m.Unk)
		}
		t.unknown = id
	}
	for b, symbol := range byteSymbols {
		id, ok := m.Vocab[string(symbol)]
		if !ok {
			return nil, fmt.Errorf("%w: the vocabulary has no piece for byte 0x%02x (%q)", ErrVocab, b, symbol)
		}
		t.bytes[b] = id
	}
	if m.IgnoreMerges {
		t.whole = make(map[string]int32, len(m.Vocab))
		for piece, id := range m.Vocab {
			if word, ok := bytesOf(piece); ok {
				t.whole[string(word)] = id
			}
		}
	}
	if t.texts, err = newTextTokens(d.AddedTokens, t); err != nil {
		return nil, err
	}
	t.merges, err = m.learned()
	return t, err
}

// learned reads the merges.
func (m bytePairModel) learned() (map[[2]int32]merge, error) {
	merges := make(map[[2]int32]merge, len(m.Merges))
	for i, raw := range m.Merges {
		left, right, err := mergePair(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: model.merges[%d]: %w", ErrVocab, i, err)
		}
		a, okA := m.Vocab[left]
		b, okB := m.Vocab[right]
		c, okC := m.Vocab[left+right]
		if !okA || !okB || !okC {
			return nil, fmt.Errorf("%w: model.merges[%d] joins %.40q and %.40q: a part or the whole is not in the vocabulary", ErrVocab, i, left, right)
		}
		if _, known := merges[[2]int32{a, b}]; !known {
			merges[[2]int32{a, b}] = merge{int32(i), c}
		}
	}
	return merges, nil
}

func mergePair(raw json.RawMessage) (left, right string, err error) {
	var pair []string
	if json.Unmarshal(raw, &pair) == nil && len(pair) == 2 {
		return pair[0], pair[1], nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", "", fmt.Errorf("want a pair of pieces")
	}
	left, right, ok := strings.Cut(text, " ")
	if !ok {
		return "", "", fmt.Errorf("%.40q has no space", text)
	}
	return left, right, nil
}

// byteSymbols is GPT-2's alphabet: printable bytes of Latin-1 stand for themselves,
// the others for the characters from U+0100 on.
var byteSymbols = func() (s [256]rune) {
	next := rune(256)
	for b := range s {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			s[b] = rune(b)
		} else {
			s[b] = next
			next++
		}
	}
	return s
}()

var symbolBytes = func() map[rune]byte {
	m := map[rune]byte{}
	for b, r := range byteSymbols {
		m[r] = byte(b)
	}
	return m
}()

// VocabSize implements Tokenizer.
func (t *BytePair) VocabSize() int { return len(t.pieces) }

// PadID implements Tokenizer.
func (t *BytePair) PadID() int32 { return t.pad }

// UnknownID is the id of unk_token, which no text has; -1 if there is none.
func (t *BytePair) UnknownID() int32 { return t.unknown }

// Piece implements Tokenizer; an id outside the vocabulary is "".
func (t *BytePair) Piece(id int32) string {
	if id < 0 || int(id) >= len(t.pieces) {
		return ""
	}
	return t.pieces[id]
}

// Encode implements Tokenizer.
func (t *BytePair) Encode(text string) []int32 { return t.encode(text, math.MaxInt32) }

// EncodeFixed implements Tokenizer.
func (t *BytePair) EncodeFixed(text string, seq int) []int32 {
	return t.fixed(seq, func(limit int) []int32 { return t.encode(text, limit) })
}

// encode stops once it has limit ids.
func (t *BytePair) encode(text string, limit int) []int32 {
	if t.texts != nil {
		return t.texts.encode(t, text, limit)
	}
	text = t.normalized(strings.ToValidUTF8(text, "\uFFFD"))
	return t.appendPart(make([]int32, 0, min(len(text)/3+1, limit+maxWordRunes)), text, true, limit)
}

func (t *BytePair) normalized(text string) string { return t.normal.apply(text) }

// appendPart appends the ids of text that is normalized.
func (t *BytePair) appendPart(ids []int32, text string, _ bool, limit int) []int32 {
	if t.prefix && text != "" && text[0] != ' ' {
		text = " " + text
	}
	for word := range t.words(text) {
		if len(ids) >= limit {
			break
		}
		ids = t.appendWord(ids, word)
	}
	return ids
}

// Decode implements Tokenizer.
func (t *BytePair) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if t.special(id) {
			continue
		}
		raw, spelled := bytesOf(t.Piece(id))
		if !spelled { // a token that was added for texts is itself
			raw = []byte(t.Piece(id))
		}
		b.Write(raw)
	}
	return b.String()
}

// bytesOf is what a piece stands for; spelled is false if it is not in the alphabet
// that stands for bytes.
func bytesOf(piece string) (raw []byte, spelled bool) {
	spelled = true
	for _, r := range piece {
		x, ok := symbolBytes[r]
		raw, spelled = append(raw, x), spelled && ok
	}
	return raw, spelled
}

//go:build !js || full

package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// BytePair is byte-pair encoding as a tokenizer.json says it: normalizers and pre-tokenizers cut a
// text into words, each character of a word is a symbol, and the adjacent pair whose merge was
// learned first is merged until none is left. Byte-level models (GPT-2, RoBERTa, Llama 3, Qwen,
// SmolLM) have bytes for characters; others (Llama 2, Gemma) spell a space as ▁, and a character
// that the vocabulary lacks as its bytes, with byte_fallback. A character or byte that it lacks
// otherwise is unk_token, or left out, as tokenizers does.
type BytePair struct {
	frame
	pieces   []string         // by id; of bytes, in the alphabet that stands for them
	ids      map[string]int32 // the model's vocabulary, without added tokens
	bytes    [256]int32       // -1: the vocabulary lacks it
	fallback bool             // bytes stand for characters that the vocabulary lacks
	merges   map[[2]int32]merge
	whole    map[string]int32 // words that are pieces as they are, whatever the merges; nil: see ignore_merges
	unknown  int32            // -1: there is none
	fuse     bool             // several unknown in a row are one
	normal   steps
	cut      cutter
	spells   spelling
	texts    *textTokens
}

// merge is what a pair of ids becomes, and when it was learned: earlier goes first.
type merge struct{ rank, id int32 }

type bytePairModel struct {
	Unk          *string           `json:"unk_token"`
	Prefix       *string           `json:"continuing_subword_prefix"`
	Suffix       *string           `json:"end_of_word_suffix"`
	Dropout      *float64          `json:"dropout"`
	Fuse         bool              `json:"fuse_unk"`
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
	var spells spelling
	cutters, err := d.PreTok.cutters(&spells)
	switch {
	case err != nil:
		return nil, err
	case set(m.Prefix) || set(m.Suffix):
		return nil, fmt.Errorf("%w: model.continuing_subword_prefix and end_of_word_suffix must be empty", ErrVocab)
	case m.ByteFallback && spells.bytes:
		return nil, fmt.Errorf("%w: model.byte_fallback is not supported of a byte-level model", ErrVocab)
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, fmt.Errorf("%w: model.dropout is %v, want 0: a text would have other ids each time", ErrVocab, *m.Dropout)
	case len(m.Merges) > maxVocab:
		return nil, fmt.Errorf("%w: %d merges, the limit is %d", ErrVocab, len(m.Merges), maxVocab)
	}
	pieces, err := vocabulary(m.Vocab, d.AddedTokens)
	if err != nil {
		return nil, err
	}
	t := &BytePair{pieces: pieces, ids: m.Vocab, unknown: -1, cut: inTurn(cutters), fallback: m.ByteFallback, fuse: m.Fuse}
	if t.frame, err = d.parse(len(pieces)); err != nil {
		return nil, err
	}
	if t.normal, _, err = parseSteps(d.Normalizer, &spells); err != nil {
		return nil, err
	}
	t.spells = spells
	if m.Unk != nil {
		id, ok := m.Vocab[*m.Unk]
		if !ok {
			return nil, fmt.Errorf("%w: model.unk_token %.40q is not in the vocabulary", ErrVocab, *m.Unk)
		}
		t.unknown = id
	}
	for b, symbol := range byteSymbols {
		name := string(symbol)
		if !spells.bytes {
			name = fmt.Sprintf("<0x%02X>", b)
		}
		id, ok := m.Vocab[name]
		if !ok {
			id = -1
		}
		t.bytes[b] = id
	}
	if m.IgnoreMerges {
		t.whole = m.Vocab
		if spells.bytes {
			t.whole = make(map[string]int32, len(m.Vocab))
			for piece, id := range m.Vocab {
				if word, ok := bytesOf(piece); ok {
					t.whole[string(word)] = id
				}
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
		merges[[2]int32{a, b}] = merge{int32(i), c} // of a pair that is there twice the last counts
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

// UnknownID is the id of unk_token; -1 if there is none.
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
func (t *BytePair) appendPart(ids []int32, text string, first bool, limit int) []int32 {
	t.cut(part{text, first}, newMeter(text), func(p part) bool {
		ids = t.appendWord(ids, p.text)
		return len(ids) < limit
	})
	return ids
}

// Decode implements Tokenizer.
func (t *BytePair) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if t.special(id) {
			continue
		}
		if !t.spells.bytes {
			t.decode(&b, id)
			continue
		}
		raw, spelled := bytesOf(t.Piece(id))
		if !spelled { // a token that was added for texts is itself
			raw = []byte(t.Piece(id))
		}
		b.Write(raw)
	}
	if t.spells.prefix {
		return strings.TrimPrefix(b.String(), " ")
	}
	return b.String()
}

// decode writes a piece that is no byte-level one.
func (t *BytePair) decode(b *strings.Builder, id int32) {
	piece := t.Piece(id)
	if t.fallback && len(piece) == len("<0x00>") {
		if x := hexByte(piece); id == t.bytes[x] {
			b.WriteByte(x)
			return
		}
	}
	if t.spells.spaces {
		piece = strings.ReplaceAll(piece, space, " ")
	}
	b.WriteString(piece)
}

// hexByte is the byte that a piece like <0x0A> names, or 0.
func hexByte(piece string) (x byte) {
	_, _ = fmt.Sscanf(piece, "<0x%02X>", &x)
	return x
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

//go:build !js || full

package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// space stands for a space within pieces.
const space = "\u2581"

// unknownPenalty is how far below the worst piece a character scores that no piece
// covers.
const unknownPenalty = 10

// Unigram is SentencePiece's unigram model (Kudo 2018), as T5 and XLM-R have it: of
// all ways to cover the normalized text with pieces, the one whose scores add up to
// most. Characters that no piece covers become unknown, a run of them one, or their
// bytes where the model has pieces for these. A tokenizer.json is computed as Hugging
// Face's tokenizers do, SentencePiece's own file as SentencePiece does: they round
// differently, which decides between two ways of equal score, and part texts
// differently.
type Unigram struct {
	frame
	parts
	pieces  []string  // by id
	scores  []float64 // of the pieces that text may become
	trie    *trie
	unknown int32
	unkCost float64
	float32 bool // scores are added in float32, as SentencePiece 0.2.3 does, and not in float64
	texts   *textTokens
	bytes   []int32 // the 256 pieces of single bytes; nil: there are none
}

// parts cuts a text into what is covered by itself, normalized, with its spaces as
// pieces have them, as long as more is wanted.
type parts interface {
	parts(text string, each func(part []byte) (more bool))
	// joined is the text that pieces spell.
	joined(pieces string) string
}

// Kinds of a SentencePiece's pieces.
const (
	kindNormal = iota + 1
	kindUnknown
	kindControl // never made from text
	kindUser    // always made where text has it
	kindUnused
	kindByte
)

type unigramPiece struct {
	text  string
	score float64
	kind  int
}

// newUnigram builds the model; frame, parts and what paths are rounded to are set by the
// caller.
func newUnigram(pieces []unigramPiece, unknown int) (*Unigram, error) {
	if len(pieces) == 0 || len(pieces) > maxVocab {
		return nil, fmt.Errorf("%w: %d pieces, want 1..%d", ErrVocab, len(pieces), maxVocab)
	}
	if unknown < 0 || unknown >= len(pieces) {
		return nil, fmt.Errorf("%w: the unknown piece has the id %d of %d pieces", ErrVocab, unknown, len(pieces))
	}
	t := &Unigram{unknown: int32(unknown)}
	least := math.MaxFloat64
	var b trieBuilder
	for i, p := range pieces {
		if p.text == "" || len(p.text) > maxPieceBytes || !utf8.ValidString(p.text) {
			return nil, fmt.Errorf("%w: piece %d (%.40q) must be 1..%d bytes of UTF-8", ErrVocab, i, p.text, maxPieceBytes)
		}
		if p.score-p.score != 0 {
			return nil, fmt.Errorf("%w: piece %d (%.40q) has the score %v", ErrVocab, i, p.text, p.score)
		}
		t.pieces, t.scores = append(t.pieces, p.text), append(t.scores, p.score)
		if p.kind == kindNormal {
			least = min(least, p.score)
		}
		if p.kind == kindNormal || p.kind == kindUser {
			if len(p.text) > maxUnigram {
				return nil, fmt.Errorf("%w: piece %d (%.40q) has %d bytes, the limit is %d", ErrVocab, i, p.text, len(p.text), maxUnigram)
			}
			b.add(p.text, int32(i))
		}
	}
	if least == math.MaxFloat64 {
		return nil, fmt.Errorf("%w: no piece can be made from text", ErrVocab)
	}
	t.unkCost = least - unknownPenalty
	var err error
	t.trie, err = b.build()
	return t, err
}

// fallBack finds the pieces that bytes become which no other piece covers: all 256 of
// them, of the kind given.
func (t *Unigram) fallBack(pieces []unigramPiece, kind int) error {
	byText := map[string]int32{}
	for i, p := range pieces {
		if p.kind == kind && strings.HasPrefix(p.text, "<0x") {
			byText[p.text] = int32(i)
		}
	}
	t.bytes = make([]int32, 256)
	for b := range t.bytes {
		id, ok := byText[fmt.Sprintf("<0x%02X>", b)]
		if !ok {
			return fmt.Errorf("%w: byte_fallback is set, and there is no piece <0x%02X>", ErrVocab, b)
		}
		t.bytes[b] = id
	}
	return nil
}

// VocabSize implements Tokenizer.
func (t *Unigram) VocabSize() int { return len(t.pieces) }

// PadID implements Tokenizer.
func (t *Unigram) PadID() int32 { return t.pad }

// UnknownID implements Tokenizer.
func (t *Unigram) UnknownID() int32 {
	if t.bytes != nil {
		return -1
	}
	return t.unknown
}

// Piece implements Tokenizer.
func (t *Unigram) Piece(id int32) string {
	if id < 0 || int(id) >= len(t.pieces) {
		id = t.unknown
	}
	return t.pieces[id]
}

// EncodeFixed implements Tokenizer.
func (t *Unigram) EncodeFixed(text string, seq int) []int32 {
	return t.fixed(seq, func(limit int) []int32 { return t.encode(text, limit) })
}

// Encode implements Tokenizer.
func (t *Unigram) Encode(text string) []int32 { return t.encode(text, math.MaxInt) }

// encode stops once it has limit ids, or more.
func (t *Unigram) encode(text string, limit int) []int32 {
	if t.texts != nil {
		m, _ := t.parts.(*metaspace) // of a tokenizer.json, which alone has them
		return t.texts.encode(unigramSplit{t, m}, text, limit)
	}
	var ids []int32
	var at []best
	t.parts.parts(text, func(part []byte) bool {
		at = slices.Grow(at[:0], len(part)+1)[:len(part)+1]
		ids = t.cover(ids, part, at)
		return len(ids) < limit
	})
	return ids
}

// resetScore is the score at which SentencePiece counts from zero again, as float32 has
// few digits left.
const resetScore = 1e5

// best is the best way to cover a text up to some byte.
type best struct {
	score float64
	from  int32 // where its last piece begins, -1: there is no way yet
	id    int32
}

// cover appends the pieces of the best way to cover s; at has a place for each byte of it
// and its end.
func (t *Unigram) cover(ids []int32, s []byte, at []best) []int32 {
	for i := range at {
		at[i] = best{from: -1}
	}
	frontier := 0
	for i := 0; i < len(s); {
		here := at[i].score
		if t.float32 && math.Abs(here) > resetScore {
			for j := i; j <= frontier; j++ {
				at[j].score = t.sum(at[j].score, -here)
			}
			here = 0
		}
		_, width := utf8.DecodeRune(s[i:])
		single := false
		t.trie.prefixes(s[i:], func(n int, id int32) {
			single, frontier = single || n == width, max(frontier, i+n)
			if score := t.sum(here, t.scores[id]); at[i+n].from < 0 || score > at[i+n].score {
				at[i+n] = best{score, int32(i), id}
			}
		})
		if !single {
			frontier = max(frontier, i+width)
			if score := t.sum(here, t.unkCost); at[i+width].from < 0 || score > at[i+width].score {
				at[i+width] = best{score, int32(i), t.unknown}
			}
		}
		i += width
	}
	first := len(ids)
	for i := int32(len(s)); i > 0; {
		id, end := at[i].id, i
		for i = at[i].from; id == t.unknown && i > 0 && at[i].id == id; i = at[i].from {
		}
		// A tokenizer.json's unknown piece is itself where a text spells it, but not beside unknown characters.
		if id != t.unknown || t.bytes == nil || !t.float32 && string(s[i:end]) == t.pieces[id] {
			ids = append(ids, id)
			continue
		}
		for _, b := range slices.Backward(s[i:end]) {
			ids = append(ids, t.bytes[b])
		}
	}
	slices.Reverse(ids[first:])
	return ids
}

// sum rounds as the reference does. That of two float32 in float64, rounded again, is
// their sum in float32.
func (t *Unigram) sum(a, b float64) float64 {
	if t.float32 {
		return float64(float32(a + b))
	}
	return a + b
}

// Decode implements Tokenizer.
func (t *Unigram) Decode(ids []int32) string {
	var b strings.Builder
	var raw []byte // pieces of single bytes that make characters together
	flush := func() {
		b.WriteString(strings.ToValidUTF8(string(raw), "\uFFFD"))
		raw = raw[:0]
	}
	for _, id := range ids {
		if t.special(id) {
			continue
		}
		if i := slices.Index(t.bytes, id); i >= 0 {
			raw = append(raw, byte(i))
			continue
		}
		flush()
		b.WriteString(t.Piece(id))
	}
	flush()
	return t.joined(b.String())
}

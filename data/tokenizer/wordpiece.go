package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Names of the special tokens, as BERT spells them.
const (
	Pad     = "[PAD]"
	Unknown = "[UNK]"
	Cls     = "[CLS]"
	Sep     = "[SEP]"
	Mask    = "[MASK]"
)

// specials in the order Train numbers them: padding is 0, so that a zeroed
// batch is an empty one.
var specials = []string{Pad, Unknown, Cls, Sep, Mask}

const (
	continuation = "##" // marks a piece that does not begin a word
	maxWordRunes = 100  // longer words become [UNK], as in BERT
)

// WordPiece splits words greedily into the longest known pieces. It is
// immutable once built and safe for concurrent use.
type WordPiece struct {
	pieces  []string         // by id
	ids     map[string]int32 // piece -> id
	longest int              // bytes of the longest piece, bounds the search
	fold    fold
	texts   *textTokens
	added   []addedToken    // of its file, but for the special ones; nil: there are none
	file    json.RawMessage // the normalizer as its file says it; nil: BERT's

	pad, unknown, cls, sep, mask int32
}

// FromVocab builds a tokenizer from the pieces in order of their ids, as a
// BERT vocab.txt lists them. The five special tokens must be among them.
// It returns an error wrapping ErrVocab that names the piece at fault.
func FromVocab(pieces []string) (*WordPiece, error) {
	if len(pieces) > maxVocab {
		return nil, fmt.Errorf("%w: %d pieces, the limit is %d", ErrVocab, len(pieces), maxVocab)
	}
	t := &WordPiece{fold: bert, pieces: pieces, ids: make(map[string]int32, len(pieces))}
	for i, p := range pieces {
		if p == "" || len(p) > maxPieceBytes || !utf8.ValidString(p) {
			return nil, fmt.Errorf("%w: piece %d (%.40q) must be 1..%d bytes of UTF-8", ErrVocab, i, p, maxPieceBytes)
		}
		if at, dup := t.ids[p]; dup {
			return nil, fmt.Errorf("%w: piece %q has ids %d and %d", ErrVocab, p, at, i)
		}
		t.ids[p] = int32(i)
		t.longest = max(t.longest, len(p))
	}
	for _, s := range []struct {
		name string
		id   *int32
	}{{Pad, &t.pad}, {Unknown, &t.unknown}, {Cls, &t.cls}, {Sep, &t.sep}, {Mask, &t.mask}} {
		id, ok := t.ids[s.name]
		if !ok {
			return nil, fmt.Errorf("%w: the special token %s is missing", ErrVocab, s.name)
		}
		*s.id = id
	}
	return t, nil
}

// VocabSize returns the number of pieces; ids are 0..VocabSize-1.
func (t *WordPiece) VocabSize() int { return len(t.pieces) }

// PadID returns the id of [PAD].
func (t *WordPiece) PadID() int32 { return t.pad }

// UnknownID returns the id of [UNK].
func (t *WordPiece) UnknownID() int32 { return t.unknown }

// ClsID returns the id of [CLS].
func (t *WordPiece) ClsID() int32 { return t.cls }

// SepID returns the id of [SEP].
func (t *WordPiece) SepID() int32 { return t.sep }

// MaskID returns the id of [MASK].
func (t *WordPiece) MaskID() int32 { return t.mask }

// Piece returns the text of an id, or [UNK] for an id outside the vocabulary.
func (t *WordPiece) Piece(id int32) string {
	if id < 0 || int(id) >= len(t.pieces) {
		return Unknown
	}
	return t.pieces[id]
}

// Encode returns the ids of text without special tokens.
func (t *WordPiece) Encode(text string) []int32 { return t.encode(nil, text, math.MaxInt) }

// EncodeFixed frames the text by [CLS] and [SEP].
func (t *WordPiece) EncodeFixed(text string, seq int) []int32 {
	f := frame{[]int32{t.cls}, []int32{t.sep}, t.pad}
	return f.fixed(seq, func(limit int) []int32 { return t.encode(make([]int32, 0, limit+maxWordRunes), text, limit) })
}

// encode appends at least limit ids where the text has them: what follows would only be cut.
func (t *WordPiece) encode(ids []int32, text string, limit int) []int32 {
	if t.texts != nil {
		return t.texts.encode(t, text, limit)
	}
	for w := range t.words(text) {
		if len(ids) >= limit {
			break
		}
		ids = t.appendWord(ids, w)
	}
	return ids
}

func (t *WordPiece) normalized(text string) string {
	text = t.fold.apply(text)
	if !t.fold.chinese || isASCII(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isIdeograph(r) {
			b.WriteString(" " + string(r) + " ")
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (t *WordPiece) appendPart(ids []int32, text string, _ bool, limit int) []int32 {
	splitWords(text, t.fold, func(word string) bool {
		ids = t.appendWord(ids, word)
		return len(ids) < limit
	})
	return ids
}

// appendWord appends the pieces of one word, or [UNK] if no split covers it.
func (t *WordPiece) appendWord(ids []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > maxWordRunes {
		return append(ids, t.unknown)
	}
	start, from := len(ids), 0
	var buf [maxPieceBytes + len(continuation)]byte
	for from < len(word) {
		prefix := 0
		if from > 0 {
			prefix = copy(buf[:], continuation)
		}
		end := min(len(word), from+t.longest-prefix)
		found := false
		for ; end > from; end-- {
			if end < len(word) && !utf8.RuneStart(word[end]) {
				continue
			}
			n := prefix + copy(buf[prefix:], word[from:end])
			if id, ok := t.ids[string(buf[:n])]; ok {
				ids, from, found = append(ids, id), end, true
				break
			}
		}
		if !found {
			return append(ids[:start], t.unknown)
		}
	}
	return ids
}

// Decode joins pieces back into text: continuation pieces without a space,
// special tokens left out. It does not undo lower-casing or spacing around
// punctuation.
func (t *WordPiece) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		switch id {
		case t.pad, t.cls, t.sep:
			continue
		}
		p := t.Piece(id)
		if rest, ok := strings.CutPrefix(p, continuation); ok && b.Len() > 0 {
			b.WriteString(rest)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p)
	}
	return b.String()
}

package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
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
// most, in float32 as the reference adds them. Characters that no piece covers
// become unknown, a run of them one.
type Unigram struct {
	frame
	pieces  []string // by id
	scores  []float32
	trie    *trie
	unknown int32
	unkCost float32
	rules   *charsmap // nil: text stays as it is
	prefix  bool      // a space is put before the text
	squeeze bool      // runs of spaces count as one, those at the ends not at all
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
	score float32
	kind  int
}

// newUnigram builds the model; the frame is set by the caller.
func newUnigram(pieces []unigramPiece, unknown int) (*Unigram, error) {
	if len(pieces) == 0 || len(pieces) > maxVocab {
		return nil, fmt.Errorf("%w: %d pieces, want 1..%d", ErrVocab, len(pieces), maxVocab)
	}
	if unknown < 0 || unknown >= len(pieces) {
		return nil, fmt.Errorf("%w: the unknown piece has the id %d of %d pieces", ErrVocab, unknown, len(pieces))
	}
	t := &Unigram{unknown: int32(unknown), prefix: true, squeeze: true}
	least := float32(math.MaxFloat32)
	var b trieBuilder
	for i, p := range pieces {
		if p.text == "" || len(p.text) > maxPieceBytes || !utf8.ValidString(p.text) {
			return nil, fmt.Errorf("%w: piece %d (%.40q) must be 1..%d bytes of UTF-8", ErrVocab, i, p.text, maxPieceBytes)
		}
		if p.score-p.score != 0 {
			return nil, fmt.Errorf("%w: piece %d (%.40q) has the score %v", ErrVocab, i, p.text, p.score)
		}
		t.pieces, t.scores = append(t.pieces, p.text), append(t.scores, p.score)
		switch p.kind {
		case kindNormal:
			least = min(least, p.score)
			if i != unknown {
				b.add(p.text, int32(i))
			}
		case kindUser, kindByte:
			return nil, fmt.Errorf("%w: piece %d (%.40q) is user-defined or a byte, which is not supported", ErrVocab, i, p.text)
		}
	}
	if least == math.MaxFloat32 {
		return nil, fmt.Errorf("%w: no piece can be made from text", ErrVocab)
	}
	t.unkCost = least - unknownPenalty
	var err error
	t.trie, err = b.build()
	return t, err
}

func parseUnigram(data []byte) (*Unigram, error) {
	var d struct {
		framing
		Normalizer json.RawMessage `json:"normalizer"`
		PreTok     json.RawMessage `json:"pre_tokenizer"`
		Model      struct {
			Unk          *int                `json:"unk_id"`
			ByteFallback bool                `json:"byte_fallback"`
			Vocab        [][]json.RawMessage `json:"vocab"`
		} `json:"model"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrVocab, err)
	}
	if d.Model.Unk == nil || d.Model.ByteFallback {
		return nil, fmt.Errorf("%w: model.unk_id is missing or model.byte_fallback is set: want an id and no fallback", ErrVocab)
	}
	if err := onlySpecial(d.AddedTokens); err != nil {
		return nil, err
	}
	special := map[string]bool{}
	for _, t := range d.AddedTokens {
		special[t.Content] = true
	}
	pieces := make([]unigramPiece, len(d.Model.Vocab))
	for i, raw := range d.Model.Vocab {
		p := unigramPiece{kind: kindNormal}
		if len(raw) != 2 || json.Unmarshal(raw[0], &p.text) != nil || json.Unmarshal(raw[1], &p.score) != nil {
			return nil, fmt.Errorf("%w: model.vocab[%d] must be a pair of piece and score", ErrVocab, i)
		}
		if special[p.text] {
			p.kind = kindControl
		}
		pieces[i] = p
	}
	for _, t := range d.AddedTokens { // T5's sentinels lie behind the vocabulary
		if int(t.ID) == len(pieces) {
			pieces = append(pieces, unigramPiece{t.Content, 0, kindControl})
		} else if t.ID < 0 || int(t.ID) > len(pieces) {
			return nil, fmt.Errorf("%w: added_tokens has %.40q at %d, behind a gap", ErrVocab, t.Content, t.ID)
		}
	}
	t, err := newUnigram(pieces, *d.Model.Unk)
	if err != nil {
		return nil, err
	}
	if t.frame, err = d.parse(len(pieces)); err != nil {
		return nil, err
	}
	if err := checkMetaspace(d.PreTok); err != nil {
		return nil, err
	}
	t.rules, err = parseNormalizer(d.Normalizer)
	return t, err
}

// step is a normalizer or pre-tokenizer of a tokenizer.json, or a sequence of them.
type step struct {
	Type    string `json:"type"`
	Charmap string `json:"precompiled_charsmap"`
	Pattern struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	Content       string  `json:"content"`
	Replacement   string  `json:"replacement"`
	AddPrefix     *bool   `json:"add_prefix_space"`
	Prepend       *string `json:"prepend_scheme"`
	Normalizers   []step  `json:"normalizers"`
	PreTokenizers []step  `json:"pretokenizers"`
}

// parseNormalizer reads a precompiled map of characters, alone or before the squeezing
// of spaces, which happens here anyway.
func parseNormalizer(raw json.RawMessage) (*charsmap, error) {
	var s *step
	if err := json.Unmarshal(orNull(raw), &s); err != nil {
		return nil, fmt.Errorf("%w: normalizer: %w", ErrVocab, err)
	}
	if s == nil {
		return nil, nil
	}
	steps := []step{*s}
	if s.Type == "Sequence" {
		steps = s.Normalizers
	}
	var m *charsmap
	for _, n := range steps {
		switch {
		case n.Type == "Precompiled" && m == nil:
			blob, err := base64.StdEncoding.DecodeString(n.Charmap)
			if err != nil {
				return nil, fmt.Errorf("%w: normalizer.precompiled_charsmap: %w", ErrVocab, err)
			}
			if m, err = parseCharsmap(blob); err != nil {
				return nil, err
			}
		case n.Type == "Replace" && n.Pattern.Regex == " {2,}" && (n.Content == " " || n.Content == space):
		case n.Type == "Strip":
		default:
			return nil, fmt.Errorf("%w: normalizer %.40q is not supported: want Precompiled", ErrVocab, n.Type)
		}
	}
	return m, nil
}

// checkMetaspace asks that words begin with the sign for a space.
func checkMetaspace(raw json.RawMessage) error {
	var s *step
	if err := json.Unmarshal(orNull(raw), &s); err != nil {
		return fmt.Errorf("%w: pre_tokenizer: %w", ErrVocab, err)
	}
	if s == nil {
		return fmt.Errorf("%w: pre_tokenizer must be Metaspace", ErrVocab)
	}
	steps := []step{*s}
	if s.Type == "Sequence" {
		steps = s.PreTokenizers
	}
	found := false
	for _, p := range steps {
		switch {
		case p.Type == "WhitespaceSplit":
		case p.Type == "Metaspace" && p.Replacement == space && (p.AddPrefix == nil || *p.AddPrefix) &&
			(p.Prepend == nil || *p.Prepend == "always" || *p.Prepend == "first"):
			found = true
		default:
			return fmt.Errorf("%w: pre_tokenizer %.40q is not supported: want Metaspace that puts %q before each word", ErrVocab, p.Type, space)
		}
	}
	if !found {
		return fmt.Errorf("%w: pre_tokenizer must be Metaspace", ErrVocab)
	}
	return nil
}

func orNull(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

// VocabSize implements Tokenizer.
func (t *Unigram) VocabSize() int { return len(t.pieces) }

// PadID implements Tokenizer.
func (t *Unigram) PadID() int32 { return t.pad }

// UnknownID implements Tokenizer.
func (t *Unigram) UnknownID() int32 { return t.unknown }

// Piece implements Tokenizer.
func (t *Unigram) Piece(id int32) string {
	if id < 0 || int(id) >= len(t.pieces) {
		id = t.unknown
	}
	return t.pieces[id]
}

// EncodeFixed implements Tokenizer.
func (t *Unigram) EncodeFixed(text string, seq int) []int32 {
	return t.fixed(seq, func(int) []int32 { return t.Encode(text) })
}

// Encode implements Tokenizer.
func (t *Unigram) Encode(text string) []int32 {
	s := t.normalize(text)
	if len(s) == 0 {
		return nil
	}
	// at[i] is the best way to cover s[:i].
	type best struct {
		score float32
		from  int32
		id    int32
	}
	at := make([]best, len(s)+1)
	for i := range at {
		at[i].from = -1
	}
	for i := 0; i < len(s); {
		here := at[i].score
		_, width := utf8.DecodeRune(s[i:])
		single := false
		t.trie.prefixes(s[i:], func(n int, id int32) {
			single = single || n == width
			if score := here + t.scores[id]; at[i+n].from < 0 || score > at[i+n].score {
				at[i+n] = best{score, int32(i), id}
			}
		})
		if !single {
			if score := here + t.unkCost; at[i+width].from < 0 || score > at[i+width].score {
				at[i+width] = best{score, int32(i), t.unknown}
			}
		}
		i += width
	}
	var ids []int32
	for i := int32(len(s)); i > 0; i = at[i].from {
		id := at[i].id
		if id == t.unknown && len(ids) > 0 && ids[len(ids)-1] == t.unknown {
			continue
		}
		ids = append(ids, id)
	}
	for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids
}

// Decode implements Tokenizer.
func (t *Unigram) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if !t.special(id) {
			b.WriteString(t.Piece(id))
		}
	}
	return strings.TrimPrefix(strings.ReplaceAll(b.String(), space, " "), " ")
}

// normalize maps characters, squeezes spaces and writes them as SentencePiece does
// (normalizer.cc).
func (t *Unigram) normalize(text string) []byte {
	out := make([]byte, 0, len(text)+len(text)/4+len(space))
	lead := t.prefix
	gap := t.squeeze // the last thing was a space: more of them add nothing
	for len(text) > 0 {
		var part string
		part, text = t.rules.next(text)
		for gap && strings.HasPrefix(part, " ") {
			part = part[1:]
		}
		if part == "" {
			continue
		}
		if lead {
			out = append(out, space...)
			lead = false
		}
		for i := range len(part) {
			if part[i] == ' ' {
				out = append(out, space...)
			} else {
				out = append(out, part[i])
			}
		}
		gap = t.squeeze && part[len(part)-1] == ' '
	}
	if t.squeeze {
		for len(out) >= len(space) && string(out[len(out)-len(space):]) == space {
			out = out[:len(out)-len(space)]
		}
	}
	return out
}

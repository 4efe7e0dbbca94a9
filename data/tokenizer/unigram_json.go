//go:build !js || full

package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

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
	if d.Model.Unk == nil {
		return nil, fmt.Errorf("%w: model.unk_id is missing", ErrVocab)
	}
	// tokenizers makes all of the model's pieces from text, special ones too; and all count for what is
	// unknown, as CamemBERT's <unk>NOTUSED of -100.
	pieces := make([]unigramPiece, len(d.Model.Vocab))
	for i, raw := range d.Model.Vocab {
		p := unigramPiece{kind: kindNormal}
		if len(raw) != 2 || json.Unmarshal(raw[0], &p.text) != nil || json.Unmarshal(raw[1], &p.score) != nil {
			return nil, fmt.Errorf("%w: model.vocab[%d] must be a pair of piece and score", ErrVocab, i)
		}
		pieces[i] = p
	}
	pieces, err := behind(pieces, d.AddedTokens)
	if err != nil {
		return nil, err
	}
	t, err := newUnigram(pieces, *d.Model.Unk)
	if err != nil {
		return nil, err
	}
	if d.Model.ByteFallback {
		if err := t.fallBack(pieces, kindNormal); err != nil {
			return nil, err
		}
	}
	if t.frame, err = d.parse(len(pieces)); err != nil {
		return nil, err
	}
	m, err := parseMetaspace(d.PreTok)
	if err != nil {
		return nil, err
	}
	t.parts = m
	if m.normal, m.plain, err = parseSteps(d.Normalizer, &spelling{}); err != nil {
		return nil, err
	}
	t.texts, err = newTextTokens(d.AddedTokens, unigramSplit{t, m})
	return t, err
}

// behind appends the added tokens that lie behind a vocabulary, as T5's sentinels do.
func behind(pieces []unigramPiece, added []addedToken) ([]unigramPiece, error) {
	for _, t := range added {
		if int(t.ID) == len(pieces) {
			pieces = append(pieces, unigramPiece{t.Content, 0, kindControl})
		} else if t.ID < 0 || int(t.ID) > len(pieces) {
			return nil, fmt.Errorf("%w: added_tokens has %.40q at %d, behind a gap", ErrVocab, t.Content, t.ID)
		}
	}
	return pieces, nil
}

// metaspace parts a text as a tokenizer.json says.
type metaspace struct {
	normal steps
	plain  bool // normal leaves spaces and ASCII's letters and digits as they are
	fields bool // parted at white space, which is left out
	prefix bool // a part begins with the sign for a space
	first  bool // but only what begins a text
	split  bool // parted before each such sign
}

// parseMetaspace asks that words begin with the sign for a space.
func parseMetaspace(raw json.RawMessage) (*metaspace, error) {
	var s *step
	if err := json.Unmarshal(orNull(raw), &s); err != nil {
		return nil, fmt.Errorf("%w: pre_tokenizer: %w", ErrVocab, err)
	}
	if s == nil {
		return nil, fmt.Errorf("%w: pre_tokenizer must be Metaspace", ErrVocab)
	}
	steps := []step{*s}
	if s.Type == "Sequence" {
		steps = s.PreTokenizers
	}
	m, scheme := &metaspace{}, ""
	for i, p := range steps {
		last := i == len(steps)-1
		switch {
		case p.Type == "WhitespaceSplit" && !last:
			m.fields = true
		case p.Type == "Metaspace" && p.Replacement == space && last:
			scheme = prependScheme(p.Prepend, p.AddPrefix)
			m.split = p.Split == nil || *p.Split
		default:
			return nil, fmt.Errorf("%w: pre_tokenizer %.40q is not supported here: want Metaspace with %q, alone or behind WhitespaceSplit",
				ErrVocab, p.Type, space)
		}
	}
	switch {
	case scheme == "always" || scheme == "first" && !m.fields:
		m.prefix, m.first = true, scheme == "first"
	case scheme != "never":
		return nil, fmt.Errorf("%w: pre_tokenizer: prepend_scheme is %.40q, which is not supported here: want always", ErrVocab, scheme)
	}
	return m, nil
}

func (m *metaspace) parts(text string, each func(part []byte) bool) {
	if !m.plain || !m.fields && !m.split {
		m.chunk("", text, each)
		return
	}
	between := ""
	for part := range chunks(text) {
		if !m.chunk(between, strings.TrimPrefix(part, between), each) {
			return
		}
		between = " "
	}
}

// chunk parts a text, or a part of one that has a space before it.
func (m *metaspace) chunk(between, text string, each func(part []byte) bool) bool {
	text = m.normal.apply(strings.ToValidUTF8(text, "\uFFFD"))
	if text == "" {
		return true
	}
	return m.spaced(between+text, m.prefix, each)
}

// spaced parts a text that is normalized.
func (m *metaspace) spaced(text string, prefix bool, each func(part []byte) bool) bool {
	var buf []byte
	for _, word := range m.words(text) {
		word = strings.ReplaceAll(word, " ", space)
		buf = buf[:0]
		if prefix && !strings.HasPrefix(word, space) {
			buf = append(buf, space...)
		}
		buf = append(buf, word...)
		for rest := buf; len(rest) > 0; {
			n := len(rest)
			if next := bytes.Index(rest[1:], []byte(space)); m.split && next >= 0 {
				n = 1 + next
			}
			if !each(rest[:n]) {
				return false
			}
			rest = rest[n:]
		}
	}
	return true
}

func (m *metaspace) words(text string) []string {
	if m.fields {
		return strings.Fields(text)
	}
	return []string{text}
}

// unigramSplit is a Unigram model between tokens that were added for texts.
type unigramSplit struct {
	*Unigram
	metaspace *metaspace
}

func (s unigramSplit) normalized(text string) string { return s.metaspace.normal.apply(text) }

func (s unigramSplit) appendPart(ids []int32, text string, first bool, limit int) []int32 {
	m, at := s.metaspace, []best(nil)
	m.spaced(text, m.prefix && (first || !m.first), func(part []byte) bool {
		at = slices.Grow(at[:0], len(part)+1)[:len(part)+1]
		ids = s.cover(ids, part, at)
		return len(ids) < limit
	})
	return ids
}

func (m *metaspace) joined(pieces string) string {
	text := strings.ReplaceAll(pieces, space, " ")
	if m.prefix {
		text = strings.TrimPrefix(text, " ")
	}
	return text
}

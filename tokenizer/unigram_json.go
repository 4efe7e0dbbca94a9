package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
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
	return t, m.parseNormalizer(d.Normalizer)
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
	split  bool // parted before each such sign
}

// step is a normalizer or pre-tokenizer of a tokenizer.json, or a sequence of them.
type step struct {
	Type    string `json:"type"`
	Charmap string `json:"precompiled_charsmap"`
	Pattern struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	Content       string  `json:"content"`
	StripLeft     bool    `json:"strip_left"`
	StripRight    bool    `json:"strip_right"`
	Replacement   string  `json:"replacement"`
	AddPrefix     *bool   `json:"add_prefix_space"`
	Prepend       *string `json:"prepend_scheme"`
	Split         *bool   `json:"split"`
	Normalizers   []step  `json:"normalizers"`
	PreTokenizers []step  `json:"pretokenizers"`
}

// runs is what a Replace of SentencePiece's conversions squeezes, as a regular expression.
const runs = " {2,}"

// squeeze replaces every run of spaces. Package regexp would, too, and with its
// tables of characters be 5 % of what a browser downloads.
func squeeze(text, by string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "  ")
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i] + by)
		text = strings.TrimLeft(text[i:], " ")
	}
}

// parseNormalizer reads a precompiled map of characters, and what takes spaces away.
func (m *metaspace) parseNormalizer(raw json.RawMessage) error {
	var s *step
	if err := json.Unmarshal(orNull(raw), &s); err != nil {
		return fmt.Errorf("%w: normalizer: %w", ErrVocab, err)
	}
	if s == nil {
		return nil
	}
	all, mapped := []step{*s}, false
	if s.Type == "Sequence" {
		all = s.Normalizers
	}
	for _, n := range all {
		switch {
		case n.Type == "Precompiled":
			blob, err := base64.StdEncoding.DecodeString(n.Charmap)
			if err != nil {
				return fmt.Errorf("%w: normalizer.precompiled_charsmap: %w", ErrVocab, err)
			}
			if mapped {
				return fmt.Errorf("%w: normalizer has a second Precompiled: together they could make a text too long", ErrVocab)
			}
			mapped = true
			rules, err := parseCharsmap(blob)
			if err != nil {
				return err
			}
			m.normal = append(m.normal, rules.byGraphemes)
			m.plain = m.plain && rules.plain()
		case n.Type == "Replace" && n.Pattern.Regex == runs && (n.Content == " " || n.Content == space):
			m.normal = append(m.normal, func(text string) string { return squeeze(text, n.Content) })
		case n.Type == "Strip":
			m.normal = append(m.normal, func(text string) string {
				if n.StripLeft {
					text = strings.TrimLeftFunc(text, unicode.IsSpace)
				}
				if n.StripRight {
					text = strings.TrimRightFunc(text, unicode.IsSpace)
				}
				return text
			})
		default:
			return fmt.Errorf("%w: normalizer %.40q is not supported: want Precompiled", ErrVocab, n.Type)
		}
	}
	if len(m.normal) > maxNormalizers {
		return fmt.Errorf("%w: %d normalizers, the limit is %d", ErrVocab, len(m.normal), maxNormalizers)
	}
	return nil
}

// maxNormalizers bounds how often a text is gone over.
const maxNormalizers = 8

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
	m, scheme := &metaspace{plain: true}, ""
	for i, p := range steps {
		last := i == len(steps)-1
		switch {
		case p.Type == "WhitespaceSplit" && !last:
			m.fields = true
		case p.Type == "Metaspace" && p.Replacement == space && last:
			scheme = "always"
			if p.Prepend != nil {
				scheme = *p.Prepend
			} else if p.AddPrefix != nil && !*p.AddPrefix {
				scheme = "never"
			}
			m.split = p.Split == nil || *p.Split
		default:
			return nil, fmt.Errorf("%w: pre_tokenizer %.40q is not supported here: want Metaspace with %q, alone or behind WhitespaceSplit",
				ErrVocab, p.Type, space)
		}
	}
	switch {
	case scheme == "always" || scheme == "first" && !m.fields:
		m.prefix = true
	case scheme != "never":
		return nil, fmt.Errorf("%w: pre_tokenizer: prepend_scheme is %.40q, which is not supported here: want always", ErrVocab, scheme)
	}
	return m, nil
}

func orNull(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
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
	var buf []byte
	for _, word := range m.words(between + text) {
		word = strings.ReplaceAll(word, " ", space)
		buf = buf[:0]
		if m.prefix && !strings.HasPrefix(word, space) {
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

func (m *metaspace) joined(pieces string) string {
	text := strings.ReplaceAll(pieces, space, " ")
	if m.prefix {
		text = strings.TrimPrefix(text, " ")
	}
	return text
}

//go:build !js || full

package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// step is a normalizer or pre-tokenizer of a tokenizer.json, or a sequence of them.
type step struct {
	Type          string       `json:"type"`
	Charmap       string       `json:"precompiled_charsmap"`
	Pattern       *textPattern `json:"pattern"`
	Content       string       `json:"content"`
	Before        string       `json:"prepend"`
	StripLeft     bool         `json:"strip_left"`
	StripRight    bool         `json:"strip_right"`
	Replacement   string       `json:"replacement"`
	AddPrefix     *bool        `json:"add_prefix_space"`
	Prepend       *string      `json:"prepend_scheme"`
	Split         *bool        `json:"split"`
	Normalizers   []step       `json:"normalizers"`
	PreTokenizers []step       `json:"pretokenizers"`
}

// maxNormalizers bounds how often a text is gone over.
const maxNormalizers = 8

// parseSteps reads a tokenizer.json's normalizer. plain says whether it leaves spaces, and
// ASCII's letters and digits each by itself, where they are: a text can then be normalized
// in chunks.
func parseSteps(raw json.RawMessage, spells *spelling) (all steps, plain bool, err error) {
	var s *step
	if err := json.Unmarshal(orNull(raw), &s); err != nil {
		return nil, false, fmt.Errorf("%w: normalizer: %w", ErrVocab, err)
	}
	if s == nil {
		return nil, true, nil
	}
	list := []step{*s}
	if s.Type == "Sequence" {
		list = s.Normalizers
	}
	if len(list) > maxNormalizers {
		return nil, false, fmt.Errorf("%w: %d normalizers, the limit is %d", ErrVocab, len(list), maxNormalizers)
	}
	plain = true
	mapped := false
	for _, n := range list {
		switch {
		case n.Type == "NFC" || n.Type == "NFD" || n.Type == "NFKC" || n.Type == "NFKD":
			all = append(all, func(text string) string { return normalForm(n.Type, text) })
		case n.Type == "Lowercase":
			all = append(all, lower)
		case n.Type == "StripAccents":
			all = append(all, withoutMarks)
		case n.Type == "Precompiled":
			blob, err := base64.StdEncoding.DecodeString(n.Charmap)
			if err != nil {
				return nil, false, fmt.Errorf("%w: normalizer.precompiled_charsmap: %w", ErrVocab, err)
			}
			if mapped {
				return nil, false, fmt.Errorf("%w: normalizer has a second Precompiled: together they could make a text too long", ErrVocab)
			}
			mapped = true
			rules, err := parseCharsmap(blob)
			if err != nil {
				return nil, false, err
			}
			all = append(all, rules.byGraphemes)
			plain = plain && rules.plain()
		case n.Type == "Replace":
			f, err := n.replacing()
			if err != nil {
				return nil, false, fmt.Errorf("%w: normalizer Replace: %w", ErrVocab, err)
			}
			all = append(all, f)
			spaced := n.Pattern.Text == " " && n.Content == space
			spells.spaces = spells.spaces || spaced
			plain = plain && n.Pattern.Regex == runs && (n.Content == " " || n.Content == space)
		case n.Type == "Prepend":
			all = append(all, func(text string) string {
				if text == "" {
					return text
				}
				return n.Before + text
			})
			spells.prefix, plain = spells.prefix || n.Before == space, false
		case n.Type == "Strip":
			all = append(all, func(text string) string {
				if n.StripLeft {
					text = strings.TrimLeftFunc(text, unicode.IsSpace)
				}
				if n.StripRight {
					text = strings.TrimRightFunc(text, unicode.IsSpace)
				}
				return text
			})
		default:
			return nil, false, fmt.Errorf("%w: normalizer %.40q is not supported: want NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Precompiled, "+
				"Replace or Prepend", ErrVocab, n.Type)
		}
	}
	return all, plain, nil
}

// runs is what SentencePiece's conversions squeeze. It leaves single spaces and all else.
const runs = " {2,}"

// replacing puts a text for whatever a pattern finds. What it makes beyond grown is cut, as is what
// lies behind an expression's steps.
func (s *step) replacing() (func(text string) string, error) {
	find, err := s.Pattern.finder()
	if err != nil {
		return nil, err
	}
	return func(text string) string {
		var b strings.Builder
		limit := grown(text)
		find(text, newMeter(text), func(from, to int, found bool) bool {
			if found {
				b.WriteString(s.Content)
			} else {
				b.WriteString(text[from:to])
			}
			return b.Len() <= limit
		})
		return b.String()
	}, nil
}

// withoutMarks leaves every mark out, not those of a character that has one in itself.
func withoutMarks(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			return -1
		}
		return r
	}, text)
}

package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode"
)

// A MaskToken is the token that is in a text for a token to be predicted: BERT's [MASK],
// RoBERTa's <mask>.
type MaskToken struct {
	ID       int32
	Spelling string
	// Left and Right say that the spaces on that side of it belong to it.
	Left, Right bool
}

// FindMask returns the mask token of a tokenizer that was parsed from data, if it has one.
func FindMask(data []byte, t Tokenizer) (MaskToken, bool) {
	m := MaskToken{ID: -1}
	for id := range int32(t.VocabSize()) {
		if p := t.Piece(id); p == "[MASK]" || p == "<mask>" {
			m.ID, m.Spelling = id, p
			break
		}
	}
	var d struct {
		Added []addedToken `json:"added_tokens"`
	}
	if json.Unmarshal(data, &d) == nil { // SentencePiece's own file names none
		for _, a := range d.Added {
			if a.ID == m.ID {
				m.Left, m.Right = a.Lstrip, a.Rstrip
			}
		}
	}
	return m, m.ID >= 0
}

// Cut returns the parts of a text between its masks: one more than it has masks.
func (m MaskToken) Cut(text string) []string {
	parts := strings.Split(text, m.Spelling)
	for i := range parts {
		if m.Left && i < len(parts)-1 {
			parts[i] = strings.TrimRightFunc(parts[i], unicode.IsSpace)
		}
		if m.Right && i > 0 {
			parts[i] = strings.TrimLeftFunc(parts[i], unicode.IsSpace)
		}
	}
	return parts
}

// Fill joins parts that Cut returned with a token's text between each two (see Text).
func (m MaskToken) Fill(parts, tokens []string) string {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			token := tokens[i-1]
			if rest, ok := strings.CutPrefix(token, continuation); ok && rest != "" {
				text := strings.TrimRightFunc(b.String(), unicode.IsSpace)
				b.Reset()
				b.WriteString(text)
				token = rest
			}
			b.WriteString(token)
		}
		b.WriteString(part)
	}
	return b.String()
}

// Text returns how one token reads on its own: " word" if its piece begins a word, "##ing" if it
// continues one in WordPiece; a special token is its name.
func Text(t Tokenizer, id int32) string {
	if text := t.Decode([]int32{id}); text != "" {
		return text
	}
	return t.Piece(id)
}

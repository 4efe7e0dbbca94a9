//go:build !js || full

package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// charsmap is SentencePiece's precompiled map of characters: a double-array trie
// (Darts-clone) from strings to offsets into a text of replacements that end in 0.
type charsmap struct {
	units  []uint32
	values string
}

// maxCharsmap bounds the map: SentencePiece's nmt_nfkc has some 240 kB.
const maxCharsmap = 16 << 20

// parseCharsmap reads the map; an empty one changes nothing.
func parseCharsmap(blob []byte) (*charsmap, error) {
	if len(blob) == 0 {
		return nil, nil
	}
	bad := func(what string) (*charsmap, error) {
		return nil, fmt.Errorf("%w: precompiled_charsmap: %s", ErrVocab, what)
	}
	if len(blob) > maxCharsmap || len(blob) < 4 {
		return bad(fmt.Sprintf("%d bytes, want 4..%d", len(blob), maxCharsmap))
	}
	n := binary.LittleEndian.Uint32(blob)
	if n == 0 || n%4 != 0 || uint64(n) > uint64(len(blob)-4) {
		return bad(fmt.Sprintf("a trie of %d bytes in %d", n, len(blob)))
	}
	m := &charsmap{units: make([]uint32, n/4), values: string(blob[4+n:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(blob[4+4*i:])
	}
	if m.values == "" || m.values[len(m.values)-1] != 0 {
		return bad("the replacements do not end in 0")
	}
	return m, m.bound()
}

// next returns the replacement of the longest known prefix of text, or its first
// character, and what follows. A byte that is no UTF-8 becomes U+FFFD. text must not
// be empty.
func (m *charsmap) next(text string) (part, rest string) {
	if m != nil {
		if value, n := m.longest(text); n > 0 {
			if end := strings.IndexByte(m.values[value:], 0); end >= 0 {
				return m.values[value : value+end], text[n:]
			}
		}
	}
	r, n := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && n <= 1 {
		return "\uFFFD", text[n:]
	}
	return text[:n], text[n:]
}

// longest is the offset of the longest match and its length, 0 if nothing matches.
func (m *charsmap) longest(text string) (value, length int) {
	m.matches(text, func(v, n int) bool {
		value, length = v, n
		return true
	})
	return value, length
}

// shortest is the replacement of the shortest known prefix of text.
func (m *charsmap) shortest(text string) (part string, ok bool) {
	m.matches(text, func(v, n int) bool {
		if end := strings.IndexByte(m.values[v:], 0); end >= 0 {
			part, ok = m.values[v:v+end], true
		}
		return false
	})
	return part, ok
}

// matches walks the trie along text, with the offset and length of each match, shortest
// first, until f has enough. A damaged trie matches less; it cannot be left. One that leads
// back into itself is left at the end of the longest rule that there may be.
func (m *charsmap) matches(text string, f func(value, length int) (more bool)) {
	at := uint32(0)
	unit := m.units[0]
	at ^= trieOffset(unit)
	for i := range min(len(text), maxRuleKey) {
		at ^= uint32(text[i])
		if uint64(at) >= uint64(len(m.units)) {
			return
		}
		unit = m.units[at]
		if unit&(1<<31|0xff) != uint32(text[i]) {
			return
		}
		at ^= trieOffset(unit)
		if unit>>8&1 == 1 && uint64(at) < uint64(len(m.units)) {
			if v := int(m.units[at] & (1<<31 - 1)); v < len(m.values) && !f(v, i+1) {
				return
			}
		}
	}
}

func trieOffset(unit uint32) uint32 { return unit >> 10 << (unit >> 6 & 8) }

// bound refuses replacements longer than any of Unicode's.
func (m *charsmap) bound() error {
	for from, i := 0, 0; i < len(m.values); i++ {
		if m.values[i] != 0 {
			continue
		}
		if n := utf8.RuneCountInString(m.values[from:i]); n > maxRule {
			return fmt.Errorf("%w: precompiled_charsmap: a rule puts %d characters for what it finds, the limit is %d", ErrVocab, n, maxRule)
		}
		from = i + 1
	}
	return nil
}

// plain reports whether spaces, and ASCII's letters and digits, stay as they are: a text can
// then be mapped in chunks.
func (m *charsmap) plain() bool {
	for c := range byte(utf8.RuneSelf) {
		if part, ok := m.shortest(string(rune(c))); ok && (alphanumeric(c) || c == ' ') && part != string(rune(c)) {
			return false
		}
	}
	return true
}

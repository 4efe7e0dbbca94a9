//go:build !js || full

package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Characters is the vocabulary of transcripts, as transformers' Wav2Vec2CTCTokenizer has it: one id
// for each character, one for the space between words, and one, the blank, for a frame in which
// nothing new is said. It is immutable.
type Characters struct {
	ids     map[rune]int32
	pieces  []string // by id
	blank   int32
	unknown int32 // -1: there is none
	space   int32 // between words; -1: there is none
	fold    bool
	between string // what a space is written as
}

// maxCharacters bounds a vocabulary: the largest published ones have some thousands.
const maxCharacters = 1 << 14

// ParseCharacters reads a base's model.CharactersFile, made of a folder's vocab.json and tokenizer_config.json.
// Errors wrap ErrVocab.
func ParseCharacters(data []byte) (*Characters, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrVocab, fmt.Sprintf(format, args...))
	}
	if len(data) > maxParsedBytes {
		return nil, bad("%d bytes, the limit is %d", len(data), maxParsedBytes)
	}
	var doc struct {
		Vocab     map[string]int `json:"vocab"`
		Blank     string         `json:"pad_token"`
		Unknown   string         `json:"unk_token"`
		Begin     string         `json:"bos_token"`
		End       string         `json:"eos_token"`
		Delimiter string         `json:"word_delimiter_token"`
		Between   *string        `json:"replace_word_delimiter_char"`
		Fold      bool           `json:"do_lower_case"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, bad("the characters: %v", err)
	}
	if len(doc.Vocab) < 2 || len(doc.Vocab) > maxCharacters {
		return nil, bad("vocab.json has %d characters, want 2..%d", len(doc.Vocab), maxCharacters)
	}
	c := &Characters{ids: map[rune]int32{}, blank: -1, unknown: -1, space: -1, fold: doc.Fold, between: " "}
	if doc.Between != nil {
		c.between = *doc.Between
	}
	most := slices.Max(slices.Collect(maps.Values(doc.Vocab)))
	if most >= maxCharacters {
		return nil, bad("vocab.json has the id %d, want 0..%d", most, maxCharacters-1)
	}
	c.pieces = make([]string, most+1)
	special := []string{doc.Blank, doc.Unknown, doc.Begin, doc.End, doc.Delimiter}
	for _, piece := range slices.Sorted(maps.Keys(doc.Vocab)) {
		id := doc.Vocab[piece]
		switch {
		case id < 0:
			return nil, bad("vocab.json: %.40q has the id %d", piece, id)
		case piece == "" || !utf8.ValidString(piece):
			return nil, bad("vocab.json: id %d is %.40q, want a character", id, piece)
		case c.pieces[id] != "":
			return nil, bad("vocab.json: id %d is both %.40q and %.40q", id, c.pieces[id], piece)
		}
		c.pieces[id] = piece
		switch piece {
		case doc.Blank:
			c.blank = int32(id)
		case doc.Unknown:
			c.unknown = int32(id)
		case doc.Delimiter:
			c.space = int32(id)
		}
		if slices.Contains(special, piece) {
			continue
		}
		r, n := utf8.DecodeRuneInString(piece)
		if n != len(piece) {
			return nil, bad("vocab.json: %.40q is several characters, and none of the special tokens that tokenizer_config.json names", piece)
		}
		c.ids[r] = int32(id)
	}
	if c.blank < 0 {
		return nil, bad("vocab.json has no %.40q, which pad_token says is the blank", doc.Blank)
	}
	return c, nil
}

// Encode returns the ids of a text, none of which is the blank. A character outside the vocabulary
// becomes its unknown character, or an error if it has none.
func (c *Characters) Encode(text string) ([]int32, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the text is not valid UTF-8")
	}
	if c.fold { // transformers' do_lower_case: what is spelt in capitals is read in small letters
		text = strings.ToUpper(strings.ReplaceAll(text, "ß", "SS"))
	}
	ids := make([]int32, 0, len(text))
	for _, r := range text {
		id, known := c.ids[r]
		if r == ' ' && c.space >= 0 || !known && c.space >= 0 && string(r) == c.pieces[c.space] {
			id, known = c.space, true
		}
		if !known {
			if id = c.unknown; id < 0 {
				return nil, fmt.Errorf("the text has the character %q, which the base's vocab.json does not", r)
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Text returns the text of ids. They are not frames: a letter that occurs twice is two letters.
func (c *Characters) Text(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		switch {
		case id == c.blank:
		case id == c.space:
			b.WriteString(c.between)
		case id >= 0 && int(id) < len(c.pieces) && c.pieces[id] != "":
			b.WriteString(c.pieces[id])
		case c.unknown >= 0:
			b.WriteString(c.pieces[c.unknown])
		}
	}
	text := strings.TrimSpace(b.String())
	if c.fold {
		text = strings.ToLower(text)
	}
	return text
}

// Letters lists the characters that texts consist of, without the space between words and special
// tokens, in the order of their ids.
func (c *Characters) Letters() (letters []string) {
	for id, piece := range c.pieces {
		if r, _ := utf8.DecodeRuneInString(piece); piece != "" && c.ids[r] == int32(id) && string(r) == piece && strings.TrimSpace(piece) != "" {
			if c.fold {
				piece = strings.ToLower(piece)
			}
			letters = append(letters, piece)
		}
	}
	return letters
}

// Blank is the id of a frame in which nothing new is said.
func (c *Characters) Blank() int32 { return c.blank }

// Size is one more than the largest id.
func (c *Characters) Size() int { return len(c.pieces) }

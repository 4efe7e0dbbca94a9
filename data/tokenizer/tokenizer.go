package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
)

// A Tokenizer turns text into ids. Implementations are immutable and safe for
// concurrent use. Special tokens that a text spells are left alone, as tokenizers'
// encode_special_tokens does: a document cannot end itself. There is one exception:
// the model of a Unigram tokenizer.json has them as pieces, and makes these from text.
type Tokenizer interface {
	// Encode returns the ids of text without special tokens.
	Encode(text string) []int32
	// EncodeFixed returns exactly seq ids: the special tokens that frame a text,
	// the text cut to fit between them, then padding. It panics if seq < 2, which
	// is a programming error.
	EncodeFixed(text string, seq int) []int32
	// Decode joins pieces back into text, special tokens left out. What the
	// tokenizer folds (case, spacing) stays folded.
	Decode(ids []int32) string
	// Piece returns the text of an id as the vocabulary has it; an id outside of it
	// is the unknown one's.
	Piece(id int32) string
	// VocabSize is the number of ids, 0..VocabSize-1.
	VocabSize() int
	// PadID is what EncodeFixed fills up with; -1 if the file names none, which no
	// model that masks padding takes (ParseFor).
	PadID() int32
	// UnknownID replaces text that no piece covers; -1 if pieces cover every
	// text.
	UnknownID() int32
}

var _ Tokenizer = (*WordPiece)(nil)

// Limits of a vocabulary.
const (
	maxVocab       = 1 << 20
	maxPieceBytes  = 4 * maxWordRunes
	maxParsedBytes = 64 << 20
)

// ErrVocab is wrapped by every error about a vocabulary that cannot be used.
var ErrVocab = errors.New("tokenizer: unusable vocabulary")

// Parse reads a Hugging Face tokenizer.json that holds a WordPiece (BERT), a
// byte-level BPE (RoBERTa, GPT-2, Llama 3, Qwen 2, SmolLM) or a Unigram model (T5), or SentencePiece's own
// file of a Unigram model, as it is or as a base carries it. At most 64 MiB and 2^20 pieces are accepted; errors wrap
// ErrVocab and name the field. What would give other ids than the tokenizer that
// the file describes is refused.
func Parse(data []byte) (Tokenizer, error) {
	if len(data) > maxParsedBytes {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrVocab, len(data), maxParsedBytes)
	}
	if isJSON(data) {
		return parseJSON(data)
	}
	return parseSentencePieceFile(data)
}

// isJSON tells a tokenizer.json from SentencePiece's own file.
func isJSON(data []byte) bool {
	b := bytes.TrimLeft(data, " \t\r\n")
	return len(b) > 0 && b[0] == '{'
}

// ParseFor is Parse for a model: every id must be one of its vocabulary's, and
// padding the id that it masks.
func ParseFor(data []byte, vocab, pad int) (Tokenizer, error) {
	t, err := ParseWithin(data, vocab)
	if err != nil {
		return nil, err
	}
	if t.PadID() == noPadding {
		return nil, fmt.Errorf("%w: no padding: neither padding.pad_id nor one of %q among added_tokens", ErrVocab, padNames)
	}
	if int(t.PadID()) != pad {
		return nil, fmt.Errorf("%w: padding has the id %d, the model's pad_token_id is %d", ErrVocab, t.PadID(), pad)
	}
	return t, nil
}

// ParseWithin is Parse for a model that masks no token by its id, such as a decoder, which never
// looks ahead: every id must be one of its vocabulary's.
func ParseWithin(data []byte, vocab int) (Tokenizer, error) {
	t, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if t.VocabSize() > vocab {
		return nil, fmt.Errorf("%w: %d pieces, the model has embeddings for %d", ErrVocab, t.VocabSize(), vocab)
	}
	return t, nil
}

// frame is the special tokens around a text.
type frame struct {
	before, after []int32
	pad           int32
}

// maxFrame bounds the special tokens around one text.
const maxFrame = 2

// fixed puts the frame around encode's ids. encode may stop reading text after limit ids.
func (f frame) fixed(seq int, encode func(limit int) []int32) []int32 {
	if seq < 2 {
		panic(fmt.Sprintf("tokenizer: EncodeFixed needs a length of at least 2, got %d", seq))
	}
	room := seq - len(f.before) - len(f.after)
	ids := encode(room)
	out := append(make([]int32, 0, seq), f.before...)
	out = append(out, ids[:min(len(ids), room)]...)
	out = append(out, f.after...)
	for len(out) < seq {
		out = append(out, f.pad)
	}
	return out
}

// special reports whether an id is part of the frame or padding.
func (f frame) special(id int32) bool {
	for _, s := range [][]int32{f.before, f.after, {f.pad}} {
		for _, x := range s {
			if x == id {
				return true
			}
		}
	}
	return false
}

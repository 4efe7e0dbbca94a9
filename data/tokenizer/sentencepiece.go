//go:build !js || full

package tokenizer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// parseSentencePiece reads SentencePiece's own file of a unigram model, the protocol
// buffer ModelProto (sentencepiece_model.proto). The frame is T5's: the end of the
// sequence behind a text. Padding is pad_id, or the unknown piece where that is -1.
func parseSentencePiece(data []byte) (*Unigram, error) {
	f, err := readSentencePiece(data)
	if err != nil {
		return nil, err
	}
	return f.tokenizer(f.pieces)
}

// sentencePieceFile is a ModelProto: its pieces, and numbers by field where it has them.
type sentencePieceFile struct {
	pieces        []unigramPiece
	trainer, norm map[int]int64
	rules         []byte
}

// Fields of trainer_spec and normalizer_spec, and what they are where they are missing.
const (
	trainerModel, modelUnigram = 3, 1
	trainerSuffix              = 24
	trainerBytes               = 35
	trainerEnd, defaultEnd     = 42, 2
	trainerPad, defaultPad     = 43, -1
	normRules                  = 2
	normPrefix                 = 3
	normSqueeze                = 4
	normEscape                 = 5
)

// number is a field of a spec, missing where the file has none.
func number(spec map[int]int64, field int, missing int64) int {
	if v, ok := spec[field]; ok {
		return int(int32(v))
	}
	return int(missing)
}

func readSentencePiece(data []byte) (*sentencePieceFile, error) {
	f := &sentencePieceFile{trainer: map[int]int64{}, norm: map[int]int64{}}
	err := eachField(data, func(field int, _ uint64, message []byte) error {
		switch field {
		case 1:
			if len(f.pieces) == maxVocab {
				return fmt.Errorf("%w: more than %d pieces", ErrVocab, maxVocab)
			}
			p := unigramPiece{kind: kindNormal}
			err := eachField(message, func(field int, number uint64, message []byte) error {
				switch field {
				case 1:
					p.text = string(message)
				case 2:
					p.score = float64(math.Float32frombits(uint32(number)))
				case 3:
					p.kind = int(number & 0xff)
				}
				return nil
			})
			f.pieces = append(f.pieces, p)
			return err
		case 2:
			return eachField(message, func(field int, number uint64, _ []byte) error {
				f.trainer[field] = int64(number)
				return nil
			})
		case 3:
			return eachField(message, func(field int, number uint64, message []byte) error {
				if field == normRules {
					f.rules = message
				}
				f.norm[field] = int64(number)
				return nil
			})
		}
		return nil
	})
	return f, err
}

// tokenizer is the model with the file's pieces, or with further ones behind them.
func (f *sentencePieceFile) tokenizer(pieces []unigramPiece) (*Unigram, error) {
	if kind := number(f.trainer, trainerModel, modelUnigram); kind != modelUnigram {
		return nil, fmt.Errorf("%w: trainer_spec.model_type is %d, only unigram (1) is read", ErrVocab, kind)
	}
	unknown := slices.IndexFunc(pieces, func(p unigramPiece) bool { return p.kind == kindUnknown })
	if unknown < 0 {
		return nil, fmt.Errorf("%w: no piece is of the kind unknown", ErrVocab)
	}
	var symbols trieBuilder
	for i, p := range pieces {
		if p.kind == kindUser {
			// Above what any others score, and the more the fewer they are.
			pieces[i].score = float64(float32(0.1 * float64(len(p.text)-1)))
			symbols.add(p.text, int32(i))
		}
	}
	t, err := newUnigram(pieces, unknown)
	if err != nil {
		return nil, err
	}
	t.float32 = true
	t.unkCost = float64(float32(t.unkCost))
	if number(f.trainer, trainerBytes, 0) != 0 {
		if err := t.fallBack(pieces, kindByte); err != nil {
			return nil, err
		}
	}
	t.pad = t.unknown
	if pad := number(f.trainer, trainerPad, defaultPad); pad >= 0 && pad < len(f.pieces) {
		t.pad = int32(pad)
	}
	if end := number(f.trainer, trainerEnd, defaultEnd); end >= 0 && end < len(f.pieces) {
		t.after = []int32{int32(end)}
	}
	w := &whole{sign: space, prefix: number(f.norm, normPrefix, 1) != 0, squeeze: number(f.norm, normSqueeze, 1) != 0,
		behind: number(f.trainer, trainerSuffix, 0) != 0}
	if number(f.norm, normEscape, 1) == 0 {
		w.sign = " "
	}
	if len(symbols.words) > 0 {
		if w.symbols, err = symbols.build(); err != nil {
			return nil, err
		}
	}
	t.parts = w
	w.rules, err = parseCharsmap(f.rules)
	return t, err
}

// whole normalizes a text as SentencePiece does (normalizer.cc), and covers it as a
// whole.
type whole struct {
	rules   *charsmap // nil: characters stay as they are
	symbols *trie     // pieces that are kept as they are; nil: there are none
	sign    string    // of a space
	prefix  bool      // one is put before the text
	behind  bool      // or behind it
	squeeze bool      // runs of spaces count as one, those at the ends not at all
}

func (w *whole) parts(text string, each func(part []byte) bool) {
	if s := w.normalize(text); len(s) > 0 {
		each(s)
	}
}

func (w *whole) normalize(text string) []byte {
	next := w.rules.next
	if w.symbols != nil {
		raw := []byte(text)
		next = func(text string) (part, rest string) {
			longest := 0
			w.symbols.prefixes(raw[len(raw)-len(text):], func(n int, _ int32) { longest = n })
			if longest > 0 {
				return text[:longest], text[longest:]
			}
			return w.rules.next(text)
		}
	}
	for w.squeeze && text != "" { // what is all spaces becomes nothing, not even a prefix
		part, rest := next(text)
		if part != " " {
			break
		}
		text = rest
	}
	if text == "" {
		return nil
	}
	out := make([]byte, 0, len(text)+len(text)/4+len(space))
	if w.prefix && !w.behind {
		out = append(out, w.sign...)
	}
	gap := w.squeeze // the last thing was a space: more of them add nothing
	for limit := grown(text); len(text) > 0 && len(out) <= limit; {
		var part string
		part, text = next(text)
		for gap && strings.HasPrefix(part, " ") {
			part = part[1:]
		}
		if part == "" {
			continue
		}
		for i := range len(part) {
			if part[i] == ' ' {
				out = append(out, w.sign...)
			} else {
				out = append(out, part[i])
			}
		}
		gap = w.squeeze && part[len(part)-1] == ' '
	}
	for w.squeeze && bytes.HasSuffix(out, []byte(w.sign)) {
		out = out[:len(out)-len(w.sign)]
	}
	if w.prefix && w.behind {
		out = append(out, w.sign...)
	}
	return out
}

func (w *whole) joined(pieces string) string {
	text := strings.ReplaceAll(pieces, space, " ")
	switch {
	case w.sign != space || w.behind:
	case w.squeeze:
		text = strings.TrimLeft(text, " ")
	case w.prefix:
		text = strings.TrimPrefix(text, " ")
	}
	return text
}

// eachField calls f with every field of a protocol buffer's message: its number, and
// its value where it is a number, or its bytes.
func eachField(data []byte, f func(field int, number uint64, message []byte) error) error {
	bad := fmt.Errorf("%w: neither a tokenizer.json nor a SentencePiece model", ErrVocab)
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29 {
			return bad
		}
		data = data[n:]
		var number uint64
		var message []byte
		switch tag & 7 {
		case 0:
			if number, n = binary.Uvarint(data); n <= 0 {
				return bad
			}
		case 1:
			if n = 8; len(data) < n {
				return bad
			}
			number = binary.LittleEndian.Uint64(data)
		case 2:
			size, m := binary.Uvarint(data)
			if m <= 0 || size > uint64(len(data)-m) {
				return bad
			}
			n = m + int(size)
			message = data[m:n]
		case 5:
			if n = 4; len(data) < n {
				return bad
			}
			number = uint64(binary.LittleEndian.Uint32(data))
		default:
			return bad
		}
		data = data[n:]
		if err := f(int(tag>>3), number, message); err != nil {
			return err
		}
	}
	return nil
}

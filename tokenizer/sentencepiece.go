package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"
)

// parseSentencePiece reads SentencePiece's own file of a unigram model, the protocol
// buffer ModelProto (sentencepiece_model.proto). The frame is T5's: the end of the
// sequence behind a text. Padding is pad_id, or the unknown piece where that is -1.
func parseSentencePiece(data []byte) (*Unigram, error) {
	var pieces []unigramPiece
	trainer := map[int]int64{}
	norm := map[int]int64{}
	var rules []byte
	err := eachField(data, func(field int, number uint64, message []byte) error {
		switch field {
		case 1:
			if len(pieces) == maxVocab {
				return fmt.Errorf("%w: more than %d pieces", ErrVocab, maxVocab)
			}
			p := unigramPiece{kind: kindNormal}
			err := eachField(message, func(field int, number uint64, message []byte) error {
				switch field {
				case 1:
					p.text = string(message)
				case 2:
					p.score = math.Float32frombits(uint32(number))
				case 3:
					p.kind = int(number & 0xff)
				}
				return nil
			})
			pieces = append(pieces, p)
			return err
		case 2:
			return eachField(message, func(field int, number uint64, _ []byte) error {
				trainer[field] = int64(number)
				return nil
			})
		case 3:
			return eachField(message, func(field int, number uint64, message []byte) error {
				if field == 2 {
					rules = message
				}
				norm[field] = int64(number)
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	read := func(from map[int]int64, field int, missing int64) int {
		if v, ok := from[field]; ok {
			return int(int32(v))
		}
		return int(missing)
	}
	const unigram = 1
	if kind := read(trainer, 3, unigram); kind != unigram {
		return nil, fmt.Errorf("%w: trainer_spec.model_type is %d, only unigram (1) is read", ErrVocab, kind)
	}
	if read(trainer, 35, 0) != 0 || read(trainer, 24, 0) != 0 {
		return nil, fmt.Errorf("%w: trainer_spec asks for byte_fallback or treat_whitespace_as_suffix, which are not supported", ErrVocab)
	}
	if read(norm, 5, 1) == 0 {
		return nil, fmt.Errorf("%w: normalizer_spec.escape_whitespaces must be set", ErrVocab)
	}
	t, err := newUnigram(pieces, read(trainer, 40, 0))
	if err != nil {
		return nil, err
	}
	t.prefix, t.squeeze = read(norm, 3, 1) != 0, read(norm, 4, 1) != 0
	t.pad = t.unknown
	if pad := read(trainer, 43, -1); pad >= 0 && pad < len(pieces) {
		t.pad = int32(pad)
	}
	if eos := read(trainer, 42, 2); eos >= 0 && eos < len(pieces) {
		t.after = []int32{int32(eos)}
	}
	t.rules, err = parseCharsmap(rules)
	return t, err
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

//go:build !js || full

package tokenizer

import (
	"encoding/json"
	"fmt"
)

var (
	_ Tokenizer = (*BytePair)(nil)
	_ Tokenizer = (*Unigram)(nil)
)

// parseFull reads the kinds of a tokenizer.json that a page's light build leaves out.
func parseFull(kind typed, data []byte) (Tokenizer, error) {
	switch {
	case kind.Type == "BPE":
		return parseBytePair(data)
	case kind.Type == "Unigram":
		return parseUnigram(data)
	case kind.Type == "SentencePiece":
		return parseSentencePieceJSON(data)
	}
	return nil, fmt.Errorf("%w: model.type is %.40q, want WordPiece, BPE or Unigram", ErrVocab, kind.Type)
}

func parseSentencePieceFile(data []byte) (Tokenizer, error) { return parseSentencePiece(data) }

// parseBefore reads what stands before a WordPiece's own folding.
func parseBefore(raw json.RawMessage) (steps, error) {
	before, plain, err := parseSteps(raw, &spelling{})
	if err == nil && !plain {
		err = fmt.Errorf("%w: normalizer changes letters or spaces of ASCII, which is not supported of a WordPiece", ErrVocab)
	}
	return before, err
}

//go:build js && !full

package tokenizer

import (
	"encoding/json"
	"fmt"
)

// A page loads the full build for a job whose tokenizer it does not read: see model.Base.Heavy.

func parseFull(kind typed, _ []byte) (Tokenizer, error) {
	return nil, fmt.Errorf("%w: model.type is %.40q, and this build reads WordPiece: the full build reads BPE and Unigram, too", ErrVocab, kind.Type)
}

func parseSentencePieceFile([]byte) (Tokenizer, error) {
	return nil, fmt.Errorf("%w: no tokenizer.json: the full build reads SentencePiece's files", ErrVocab)
}

func parseBefore(raw json.RawMessage) (steps, error) {
	return nil, fmt.Errorf("%w: normalizer is %.80q, and this build reads BertNormalizer: the full build reads others, too", ErrVocab, raw)
}

//go:build !js || full

package tokenizer

import (
	"encoding/json"
	"fmt"
)

// maxSentinels bounds T5's extra_ids.
const maxSentinels = 1 << 12

// parseSentencePieceJSON reads what a folder with SentencePiece's own file becomes
// (model.LoadBase): the file as it is, and what transformers puts behind its pieces.
func parseSentencePieceJSON(data []byte) (*Unigram, error) {
	var d struct {
		AddedTokens []addedToken `json:"added_tokens"`
		Model       struct {
			File      []byte `json:"file"`       // base64
			Sentinels int    `json:"extra_ids"`  // <extra_id_N>, the last first
			Vocab     int    `json:"vocab_size"` // of the model; what lies behind it cannot be used
		} `json:"model"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrVocab, err)
	}
	if n := d.Model.Sentinels; n < 0 || n > maxSentinels {
		return nil, fmt.Errorf("%w: extra_ids is %d, want 0..%d", ErrVocab, n, maxSentinels)
	}
	f, err := readSentencePiece(d.Model.File)
	if err != nil {
		return nil, err
	}
	pieces := f.pieces[:len(f.pieces):len(f.pieces)]
	for n := d.Model.Sentinels - 1; n >= 0 && len(pieces) < d.Model.Vocab; n-- {
		pieces = append(pieces, unigramPiece{fmt.Sprintf("<extra_id_%d>", n), 0, kindControl})
	}
	for _, t := range d.AddedTokens {
		switch known := t.ID >= 0 && int(t.ID) < len(pieces); {
		case known && pieces[t.ID].text == t.Content:
		case known:
			return nil, fmt.Errorf("%w: added tokens have %.40q at %d, where SentencePiece's file has %.40q",
				ErrVocab, t.Content, t.ID, pieces[t.ID].text)
		case !t.Special:
			return nil, fmt.Errorf("%w: added tokens: %.40q is not special, so that texts would have other ids with it: "+
				"only special tokens may be added", ErrVocab, t.Content)
		}
	}
	if pieces, err = behind(pieces, d.AddedTokens); err != nil {
		return nil, err
	}
	return f.tokenizer(pieces)
}

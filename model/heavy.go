package model

import "encoding/json"

// Heavy reports whether a page's light build goes without what the base needs: its architecture, or
// its tokenizer, where that is anything but a WordPiece that folds texts as BERT's do.
func (b *Base) Heavy() bool {
	if b.Config.Heavy() || b.Config.Textless() {
		return b.Config.Heavy()
	}
	type typed struct {
		Type string `json:"type"`
	}
	var file struct {
		Model      typed `json:"model"`
		Normalizer typed `json:"normalizer"`
	}
	err := json.Unmarshal(b.Tokenizer, &file) // SentencePiece's own file is none
	return err != nil || file.Model.Type != "WordPiece" || file.Normalizer.Type != "BertNormalizer"
}

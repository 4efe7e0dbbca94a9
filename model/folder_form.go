package model

import "io/fs"

// A folderForm is what a folder of an architecture's has that is not as an encoder's. It
// is apart from the architecture, since who is handed a base in one piece, as a page
// is, links nothing of it.
type folderForm struct {
	keys     func(c Config) map[string]any              // config.json as theirs is
	reads    func(c *Config, fsys fs.FS) error          // preprocessor_config.json, of one that reads no text
	prepares func(c Config) map[string]any              // the same, as it is written
	old      func(c Config, fsys fs.FS) ([]byte, error) // tokenizer.json of older files, if vocabulary is not enough

	characters func(c *Config, fsys fs.FS) ([]byte, error) // of one that writes down what it hears; nil for others

	vocabulary func(fsys fs.FS) (ids map[string]int, file map[string]any, err error) // tokenizer.json of older files; nil: there are none
}

func (c Config) folder() folderForm {
	if c.ModelType == "gpt2" {
		return folderForm{keys: Config.gpt2Config, vocabulary: bytePairFile}
	}
	if c.arch().decoder != nil {
		return folderForm{keys: Config.decoderConfig}
	}
	switch c.ModelType {
	case "xlm-roberta", "camembert":
		return folderForm{} // their tokenizers are SentencePiece's
	case "roberta":
		return folderForm{vocabulary: bytePairFile}
	case "t5":
		form := folderForm{keys: Config.t5Config, old: Config.sentencePieceTokenizer}
		if page, looks := c.T5.Page(); looks {
			form.reads = (*Config).readPagePreprocessor
			form.prepares = func(Config) map[string]any { return page.preprocessor() }
		}
		return form
	case "vit":
		return folderForm{keys: Config.vitConfig, reads: (*Config).readViTPreprocessor, prepares: Config.preprocessor}
	case "hubert", "wav2vec2":
		return folderForm{keys: Config.speechConfig, reads: (*Config).readSpeechPreprocessor, prepares: Config.speechPreprocessor, characters: (*Config).readCharacters}
	}
	return folderForm{vocabulary: wordPieceFile}
}

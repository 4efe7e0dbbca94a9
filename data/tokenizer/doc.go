// Package tokenizer turns text into token ids. [Parse] reads a Hugging Face tokenizer.json, or
// SentencePiece's file, and returns a [Tokenizer]: WordPiece with the rules of BERT's uncased
// models (Devlin et al. 2019, appendix A.2; Wu et al. 2016, section 4.1), byte-level or
// SentencePiece BPE, or a unigram model. [Train] builds a vocabulary of words' pieces from a
// corpus, package unigram one of a unigram model.
//
// It runs on the device, where the private text is, so it builds for js/wasm and depends on nothing
// but Unicode tables. A vocabulary comes from the coordinator and is treated as hostile: Parse
// bounds what it allocates.
package tokenizer

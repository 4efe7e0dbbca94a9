// Package tokenizer turns text into token ids: WordPiece with the rules of
// BERT's uncased models (Devlin et al. 2019, appendix A.2; Wu et al. 2016,
// section 4.1), reading and writing Hugging Face's tokenizer.json, and a
// trainer that builds a vocabulary from a corpus.
//
// It runs on the device, where the private text is, so it builds for js/wasm
// and depends on nothing but Unicode tables. A vocabulary comes from the
// coordinator and is treated as hostile: Parse bounds what it allocates.
package tokenizer

// Package pretraining makes bases: it trains a tokenizer and an encoder on a corpus ([MakeBase]), and
// bases that write or hear on what a caller draws ([Writer]). An interrupted run goes on where it was.
package pretraining

// Package peft reads adapters that PEFT, Hugging Face's library, or others have trained: what a job
// may begin with. model writes them.
package peft

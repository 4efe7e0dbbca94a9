// Package base holds the default base: a small BERT-style encoder with its
// tokenizer, trained by `starling pretrain --generated` (make base) on
// generated public text only, and embedded in the binary.
//
//	b, err := base.Default()
package base

import (
	"embed"
	"io/fs"
	"sync"

	"github.com/starling-fl/starling/model"
)

//go:embed default
var files embed.FS

//go:embed documents
var documents embed.FS

// Documents returns the embedded base for documents: a T5 that reads where words
// stand, trained by `starling pretrain --architecture t5 --generated` (make documents)
// on generated documents of public senders only. It is read once and shared; the
// caller must not change it.
var Documents = sync.OnceValues(func() (*model.Base, error) {
	sub, err := fs.Sub(documents, "documents")
	if err != nil {
		return nil, err
	}
	return model.LoadBase(sub)
})

// DocumentsGenerator is the version of the generator that the base for documents was
// trained on.
//
//go:embed documents/GENERATOR
var DocumentsGenerator string

// Generator is the version of the text generator that the base was trained
// on, as `starling pretrain` recorded it.
//
//go:embed default/GENERATOR
var Generator string

// Default returns the embedded base. It is read once and shared; the caller
// must not change it.
var Default = sync.OnceValues(func() (*model.Base, error) {
	sub, err := fs.Sub(files, "default")
	if err != nil {
		return nil, err
	}
	return model.LoadBase(sub)
})

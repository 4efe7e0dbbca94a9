// Package llama holds the embedded base that writes: a small decoder in Llama's shape with its
// tokenizer, trained by `starling pretrain --architecture llama --generated` (make commands) on
// generated commands and prose only. Operators' programs embed it; devices get it from their
// coordinator.
//
//	b, err := llama.Commands()
package llama

import (
	"embed"
	"io/fs"
	"sync"

	"github.com/starling-fl/starling/model"
)

//go:embed commands
var files embed.FS

// Generator is the version of the generator that the base was trained on.
//
//go:embed commands/GENERATOR
var Generator string

// Commands returns the base. It is read once and shared; the caller must not change it.
var Commands = sync.OnceValues(func() (*model.Base, error) {
	sub, err := fs.Sub(files, "commands")
	if err != nil {
		return nil, err
	}
	return model.LoadBase(sub)
})

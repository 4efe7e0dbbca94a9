// Package plugins lets commands choose between the compiled program and the plugins that are
// built into a program.
package plugins

import (
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/model/nn/hosted"
	"github.com/starling-fl/starling/model/xla"
	"github.com/starling-fl/starling/wasm/program"
)

// Flags lets a command choose between the compiled program and XLA.
func Flags() engine.Flags { return engine.Flags{Plugin: openXLA} }

// openXLA opens its plugin.
func openXLA(path string) (engine.Engine, error) {
	e, err := xla.Open(path)
	if err != nil {
		return engine.Engine{}, err
	}
	host := func(parallel, together int) edge.Trainer {
		h := hosted.New(e.Backend, parallel, program.Read)
		if together > 1 {
			return h.Together(together)
		}
		return h
	}
	return engine.Engine{Name: e.Name, Backend: e.Backend, Host: host, Compile: program.Describe}, nil
}

// Package plugins lets commands choose between the compiled program and the plugins that are
// built into a program.
package plugins

import (
	"github.com/starling-fl/starling/internal/engine"
	"github.com/starling-fl/starling/program"
	"github.com/starling-fl/starling/xla"
)

// Flags lets a command choose between the compiled program and XLA.
func Flags() engine.Flags { return engine.Flags{Plugin: openXLA} }

// openXLA opens its plugin.
func openXLA(path string) (engine.Engine, error) {
	e, err := xla.Open(path)
	if err != nil {
		return engine.Engine{}, err
	}
	return engine.Engine{Name: e.Name, Backend: e.Backend, Hosted: true, Compile: program.Describe}, nil
}

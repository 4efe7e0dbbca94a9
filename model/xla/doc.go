// Package xla loads a PJRT plugin, through which XLA runs GoMLX graphs: on accelerators,
// and on a processor about as fast as the compiled program.
//
//	engine, err := xla.Open("cpu")
//
// It is for simulations and for owners of a model, never for a device: a plugin is foreign native
// code, outside of every sandbox. A program has it only where it was built with cgo and -tags xla;
// without, Open says how. Nothing is ever downloaded.
package xla

import (
	"errors"

	"github.com/gomlx/compute"
)

// ErrPlugin is a plugin that cannot be used.
var ErrPlugin = errors.New("xla")

// Engine is a plugin that is loaded, for the rest of the process.
type Engine struct {
	// Name tells engines apart that may compute other bits: the plugin's file, and for
	// one that computes on the processor what of it the code and the order of sums
	// depend on.
	Name    string
	Backend compute.Backend
}

// Package engine computes training steps and predictions for commands: by the compiled
// program that every device runs, or a plugin where the program that links this has one.
package engine

import (
	"fmt"
	"os"

	"github.com/gomlx/compute"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
	"github.com/starling-fl/starling/wasm/program"
)

// Program is the name of the compiled training program: the one a fleet runs.
const Program = "program"

// Engine computes training steps and predictions.
type Engine struct {
	Name    string // two whose bits may differ have different ones
	Backend compute.Backend
	Compile func(spec program.Spec) ([]byte, error) // what its trainer takes for a program

	// Host makes a trainer whose steps run on the backend, with at most parallel trainings at once
	// and the steps of that many clients computed together; nil: steps run as a program in a sandbox.
	Host func(parallel, together int) edge.Trainer

	cohort int // clients whose steps are taken at once, where hosted; below 2: each alone
}

// New makes the engine of every device.
func New() Engine {
	return Engine{Name: Program, Backend: compiler.New(), Compile: program.Step}
}

// Trainer lets so many clients train side by side; the caller closes it.
func (e Engine) Trainer(parallel int) edge.Trainer {
	if e.Host != nil {
		return e.Host(max(1, parallel), e.cohort)
	}
	return edge.NewProgramTrainer(max(1, parallel))
}

// Flags choose an engine.
type Flags struct {
	// Plugin opens the PJRT plugin at a path. nil: there is nothing to choose, and no flag.
	Plugin func(path string) (Engine, error)
	// Together is the number of clients whose steps are computed at once.
	Together int

	name, pjrt string
}

// mostTogether bounds --together.
const mostTogether = 1024

// PluginVariable names the plugin where --pjrt does not.
const PluginVariable = "STARLING_PJRT"

// Add adds the flags.
func (f *Flags) Add(fl *pflag.FlagSet) {
	f.name = Program
	if f.Plugin == nil {
		return
	}
	fl.StringVar(&f.name, "engine", Program, "what computes: program, the compiled program that devices run, or xla, through a PJRT plugin (in a build with -tags xla)")
	fl.StringVar(&f.pjrt, "pjrt", "", "with --engine xla: absolute path of the plugin (default $"+PluginVariable+")")
}

// AddTogether adds the flag of steps of several clients at once, for simulations in one process.
func (f *Flags) AddTogether(fl *pflag.FlagSet) {
	fl.IntVar(&f.Together, "together", 1, "with --engine xla: clients whose steps are computed at once, for accelerators; results depend on it by rounding")
}

// Open is the engine that was chosen.
func (f *Flags) Open() (Engine, error) {
	switch {
	case f.Together < 0 || f.Together > mostTogether:
		return Engine{}, usage.Errorf("--together is %d, must be in 1..%d", f.Together, mostTogether)
	case f.Together > 1 && f.name != "xla":
		return Engine{}, usage.Errorf("--together needs --engine xla")
	}
	switch f.name {
	case Program:
		if f.pjrt != "" {
			return Engine{}, usage.Errorf("--pjrt needs --engine xla")
		}
		return New(), nil
	case "xla":
		if f.pjrt == "" {
			f.pjrt = os.Getenv(PluginVariable)
		}
		e, err := f.Plugin(f.pjrt)
		if err != nil {
			return Engine{}, err
		}
		if e.cohort = f.Together; e.cohort > 1 { // the bits of a step depend on what is computed beside it
			e.Name = fmt.Sprintf("%s, %d clients together", e.Name, e.cohort)
		}
		return e, nil
	}
	return Engine{}, usage.Errorf("--engine is %q, want program or xla", f.name)
}

// Quickest is the default class of arithmetic of runs on this machine alone: fused if the processor
// has it, since no device has to follow.
func Quickest() string {
	if wasm.Fuses() {
		return job.Fused
	}
	return job.Exact
}

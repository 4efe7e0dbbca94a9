package main

import (
	"fmt"
	"os"

	"github.com/gomlx/compute"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/program"
	"github.com/starling-fl/starling/wasm/compiler"
	"github.com/starling-fl/starling/xla"
)

// engineProgram is the compiled training program: the one a fleet runs.
const engineProgram = "program"

// engine computes training steps and predictions.
type engine struct {
	name    string // two whose bits may differ have different ones
	backend compute.Backend
	cohort  int                 // clients whose steps are taken at once, where hosted; below 2: each alone
	hosted  bool                // steps run on the backend, not as a program in a sandbox
	compile coordinator.Compile // what its trainer takes for a program
}

// programEngine is that of every device.
func programEngine() engine {
	return engine{name: engineProgram, backend: compiler.New(), compile: program.Step}
}

// trainer lets so many clients train side by side; the caller closes it.
func (e engine) trainer(parallel int) edge.Trainer {
	if e.hosted {
		h := nn.NewHosted(e.backend, max(1, parallel), program.Read)
		if e.cohort > 1 {
			return h.Together(e.cohort)
		}
		return h
	}
	return edge.NewProgramTrainer(max(1, parallel))
}

// engineFlags choose an engine.
type engineFlags struct {
	name, pjrt string
	together   int
}

// mostTogether bounds --together.
const mostTogether = 1024

// pjrtVariable names the plugin where --pjrt does not.
const pjrtVariable = "STARLING_PJRT"

func (f *engineFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.name, "engine", engineProgram, "what computes: program, the compiled program that devices run, or xla, through a PJRT plugin (in a build with -tags xla)")
	fl.StringVar(&f.pjrt, "pjrt", "", "with --engine xla: absolute path of the plugin (default $"+pjrtVariable+")")
}

// addTogether adds what only a simulation in one process can do.
func (f *engineFlags) addTogether(fl *pflag.FlagSet) {
	fl.IntVar(&f.together, "together", 1, "with --engine xla: clients whose steps are computed at once, for accelerators; results depend on it by rounding")
}

func (f engineFlags) open() (engine, error) {
	switch {
	case f.together < 0 || f.together > mostTogether:
		return engine{}, usagef("--together is %d, must be in 1..%d", f.together, mostTogether)
	case f.together > 1 && f.name != "xla":
		return engine{}, usagef("--together needs --engine xla")
	}
	switch f.name {
	case engineProgram:
		if f.pjrt != "" {
			return engine{}, usagef("--pjrt needs --engine xla")
		}
		return programEngine(), nil
	case "xla":
		if f.pjrt == "" {
			f.pjrt = os.Getenv(pjrtVariable)
		}
		e, err := xla.Open(f.pjrt)
		if err != nil {
			return engine{}, err
		}
		if f.together > 1 { // the bits of a step depend on what is computed beside it
			e.Name = fmt.Sprintf("%s, %d clients together", e.Name, f.together)
		}
		return engine{name: e.Name, backend: e.Backend, cohort: f.together, hosted: true, compile: program.Describe}, nil
	}
	return engine{}, usagef("--engine is %q, want program or xla", f.name)
}

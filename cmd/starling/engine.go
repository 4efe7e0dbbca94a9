package main

import (
	"os"

	"github.com/gomlx/compute"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm/compiler"
	"github.com/starling-fl/starling/xla"
)

// engineProgram is the compiled training program: the one a fleet runs.
const engineProgram = "program"

// engine computes training steps and predictions.
type engine struct {
	name    string // two whose bits may differ have different ones
	backend compute.Backend
	hosted  bool                // steps run on the backend, not as a program in a sandbox
	compile coordinator.Compile // what its trainer takes for a program
}

// programEngine is that of every device.
func programEngine() engine {
	return engine{name: engineProgram, backend: compiler.New(), compile: coordinator.CompileStep}
}

// trainer lets so many clients train side by side; the caller closes it.
func (e engine) trainer(parallel int) edge.Trainer {
	if e.hosted {
		return nn.NewHosted(e.backend, max(1, parallel), coordinator.ReadStep)
	}
	return edge.NewProgramTrainer(max(1, parallel))
}

// engineFlags choose an engine.
type engineFlags struct{ name, pjrt string }

// pjrtVariable names the plugin where --pjrt does not.
const pjrtVariable = "STARLING_PJRT"

func (f *engineFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.name, "engine", engineProgram, "what computes: program, the compiled program that devices run, or xla, through a PJRT plugin (in a build with -tags xla)")
	fl.StringVar(&f.pjrt, "pjrt", "", "with --engine xla: absolute path of the plugin (default $"+pjrtVariable+")")
}

func (f engineFlags) open() (engine, error) {
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
		return engine{name: e.Name, backend: e.Backend, hosted: true, compile: coordinator.DescribeStep}, nil
	}
	return engine{}, usagef("--engine is %q, want program or xla", f.name)
}

//go:build !js

package wasm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/program"
)

// A training step that a coordinator compiled is verified before anything of it
// runs: what it reads and writes, how much memory it has, and that it ends.
func Example() {
	b, err := base.Default()
	check(err)
	j := job.Default()
	j.Name, j.Labels = "mail", []string{"hotel", "travel"}
	core, err := core.New(j, b, nil)
	check(err)
	program, err := program.Step(core.ProgramSpec(4, "wazero"))
	check(err)

	report, err := wasm.Verify(program, wasm.Limits{})
	check(err)
	fmt.Println("segments that end:", len(report.Segments) > 0)

	ctx := context.Background()
	p, err := wasm.Load(ctx, program, wasm.Config{})
	check(err)
	in, err := p.NewInstance(ctx)
	check(err)
	defer func() { check(errors.Join(in.Close(), p.Close())) }()
	for _, t := range p.Manifest().Inputs {
		fmt.Println(t.Name, t.DType, t.Shape)
	}

	_, err = wasm.Verify(program[:len(program)/2], wasm.Limits{})
	fmt.Println("half a program:", err != nil)
	// Output:
	// segments that end: true
	// tokens i32 [8 64]
	// labels i32 [8]
	// weights f32 [8]
	// learning_rate f32 []
	// step f32 []
	// half a program: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

package coordinator

import (
	"context"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/program"
)

// The step of a base of 50 layers, two to four times as many as people use, compiles
// to a program that a device takes.
func TestDeepBase(t *testing.T) {
	c := model.BERT(30, 16, 50, 2, 8)
	b, err := model.RandomBase(c, 1, tinyBase(t).Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	j := tinyJob(4)
	j.BaseFormat = "nf4"
	if b, err = j.OpenBase(b); err != nil {
		t.Fatal(err)
	}
	core, err := core.New(j, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	loadStep(t, core, 3)
}

// loadStep compiles a rank's step and loads it as a device does.
func loadStep(t *testing.T, core *core.Core, rank int) ([]byte, *wasm.Program) {
	t.Helper()
	code, err := program.Step(core.ProgramSpec(rank, program.Hosts[0]))
	if err != nil {
		t.Fatal(err)
	}
	p, err := wasm.Load(context.Background(), code, wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return code, p
}

package nn

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestDearShapesCompile compiles steps with a loop that costs more than a segment may: attention over many tokens. They
// fit a program's memory, so devices have to take them.
func TestDearShapesCompile(t *testing.T) {
	for name, s := range map[string]StepSpec{
		"4 x 512, 2 x 512 tokens":  {Config: model.BERT(30522, 512, 4, 8, 512), Spec: training.Spec{Batch: 2}, Sequence: 512},
		"2 x 128, 16 x 512 tokens": {Config: model.BERT(1000, 128, 2, 2, 512), Spec: training.Spec{Batch: 16}, Sequence: 512},
		"1 x 64, 1 x 4096 tokens":  {Config: model.BERT(1000, 64, 1, 1, 4096), Spec: training.Spec{Batch: 1}, Sequence: 4096},
	} {
		s.Method, s.Classes, s.Rank, s.Optimizer = model.Method{RMax: 8, Alpha: 8}, 4, 8, training.AdamW
		for _, host := range []string{compiler.HostWazero, compiler.HostV8} {
			t.Run(name+"/"+host, func(t *testing.T) {
				var params []Param
				var outputs []Output
				g, err := compiler.Record(func(g *graph.Graph) (nodes []*graph.Node) {
					var err error
					if params, outputs, err = s.Build(g); err != nil {
						panic(err)
					}
					for _, o := range outputs {
						nodes = append(nodes, o.Node)
					}
					return nodes
				})
				if err != nil {
					t.Fatal(err)
				}
				spec := compiler.Spec{Name: name, Host: host}
				for _, p := range params {
					role := map[Role]compiler.Role{Input: compiler.Input, State: compiler.State, Frozen: compiler.Frozen}[p.Role]
					spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: role})
				}
				for _, o := range outputs {
					spec.Outputs = append(spec.Outputs, compiler.Output{Name: o.Name, State: o.State})
				}
				program, err := compiler.CompileGraph(g, spec)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := wasm.Verify(program, wasm.Limits{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

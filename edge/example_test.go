//go:build !race && !js

// GoMLX's Go backend does not run under the race detector's pointer checks.

package edge_test

import (
	"context"
	"fmt"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/reference"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/quant"
)

// Contribute is a device's whole part in a round but for the masks: from examples
// to integers whose squared sum is bounded, whatever the data.
func ExampleContribute() {
	b, err := base.Default()
	check(err)
	layout, err := model.NewLayout(b.Config, model.Method{RMax: 8, Alpha: 4}, 2)
	check(err)
	set := &dataset.Set{Labels: []string{"hotel", "travel"}, Examples: []dataset.Example{
		{Text: "two rooms for three nights", Label: 0}, {Text: "taxi to the airport", Label: 1},
	}}
	classify, err := task.New(b, layout, 16)
	check(err)
	data, err := edge.NewData(set, classify, 0, 0)
	check(err)
	scheme, err := quant.Lookup("nf4")
	check(err)
	lattice, err := quant.NewLattice(scheme, layout.Size(2), 2, [32]byte{1})
	check(err)
	reference := reference.New()
	defer func() { check(reference.Close()) }()

	symbols, err := edge.Contribute(context.Background(), reference, data, edge.Contribution{
		Round: 1, Lattice: lattice,
		Task: edge.Task{
			Base: func(context.Context) (*model.Base, error) { return b, nil }, Layout: layout, Rank: 2,
			Start: model.NewAdapter(layout, 1).Slice(2), Sequence: 16,
			Spec: training.Spec{Steps: 3, Batch: 2, Optimizer: training.AdamW, LearningRate: 0.03},
		},
	})
	check(err)
	var norm2 int64
	for _, s := range symbols {
		norm2 += int64(s) * int64(s)
	}
	fmt.Println("one symbol a coordinate:", len(symbols) == lattice.D())
	fmt.Println("within the bound, and something was learned:", norm2 <= lattice.B2(), norm2 > 0)
	// Output:
	// one symbol a coordinate: true
	// within the bound, and something was learned: true true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

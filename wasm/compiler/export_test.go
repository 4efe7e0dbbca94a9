package compiler

import (
	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// Recorder is a backend whose executables are graphs, for Recorded.
func Recorder() *Backend {
	b := New()
	b.record = true
	return b
}

// Recorded is the graph that an executable of a Recorder holds.
func Recorded(e compute.Executable) *ir.Graph { return e.(*recording).graph }

// Predict compiles a graph, and says what the emitter counted for each segment.
func Predict(g *ir.Graph, spec Spec) (program []byte, costs []uint64, err error) {
	m, err := compileGraph(g, spec)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range m.manifest.Calls() {
		costs = append(costs, m.segments[c.Segment].Cost())
	}
	program, err = m.bytes()
	return program, costs, err
}

// Flat is a specification whose program writes every layer out.
func Flat(s Spec) Spec {
	s.flat = true
	return s
}

// Cutting is a specification whose calls are cut where they cost more than most units.
func Cutting(s Spec, most uint64) Spec {
	s.most = most
	return s
}

//go:build !js

package wasm

import (
	"context"
	"slices"

	"github.com/starling-fl/starling/wasm/kernel"
)

// What tests of compiled programs need to run one product by itself.

// Memory returns an instance's memory.
func (in *Instance) Memory() []byte { return in.host.(*wazeroInstance).all }

// RunTwin runs the segments of a declared product of a step with all rounds; its parts, which do not depend on each
// other, last to first.
func (in *Instance) RunTwin(ctx context.Context, p *Product) error {
	parts := p.Parts
	if parts == nil {
		parts = []int{p.Count}
	}
	end := p.First + p.Count
	for _, n := range slices.Backward(parts) {
		for i := end - n; i < end; i++ {
			if err := in.host.call(ctx, false, in.program.calls[i], in.program.report.Segments[i].Budget); err != nil {
				return err
			}
		}
		end -= n
	}
	return nil
}

// RunKernel computes a declared product of m in memory.
func (m *Manifest) RunKernel(ctx context.Context, p *Product, name string, memory []byte, cores int) error {
	k, _ := kernel.ByName(name)
	plan, err := kernel.Prepare(p.forKernel(m), len(memory))
	if err != nil {
		return err
	}
	team := kernel.NewTeam(cores)
	defer team.Stop()
	return k.Run(ctx, plan, memory, team)
}

// Reach returns the memory from the first to the last byte of A (0), B (1) or C (2):
// of an NF4 tensor all codes, and then all scales.
func (m *Manifest) Reach(p *Product, operand int) (ranges [][2]uint64) {
	if operand == 1 && p.NF4 > 0 {
		t := &m.Frozen[p.NF4-1]
		codes, scales := uint64(t.Offset), uint64(t.NF4.Scales)
		return [][2]uint64{{codes, codes + t.DataSize()}, {scales, scales + t.ScalesSize()}}
	}
	s, err := p.bytes("", operandA+operand, [3]uint32{p.A, p.B, p.C}[operand])
	if err != nil {
		panic(err)
	}
	return [][2]uint64{{s.from, s.to}}
}

//go:build !js

package wasm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-fl/starling/wasm/kernel"
)

// Kernels returns the names of what can compute declared products here, fastest
// first: kernels for the processor's vector units, then Twin.
func Kernels() []string {
	var names []string
	for _, k := range kernel.Native() {
		names = append(names, k.Name())
	}
	return append(names, Twin)
}

// products computes a program's declared products with a kernel of this host.
type products struct {
	kernel *kernel.Kernel
	cores  int
	at     map[int]planned // by first segment
}

type planned struct {
	*kernel.Plan
	segments int
}

// newProducts returns nil where the program's own code is to run.
func newProducts(m *Manifest, pages uint32, cfg Config) (*products, error) {
	name := cfg.Kernel
	if name == "" {
		name = Kernels()[0]
	}
	k, ok := kernel.ByName(name)
	if !ok && name != Twin {
		return nil, fmt.Errorf("wasm: no kernel %.40q here, there are %s", name, strings.Join(Kernels(), ", "))
	}
	// Memory of 4 GiB is more than a length of 32 bits can tell.
	if name == Twin || cfg.Interpreter || pages >= 1<<16 {
		return nil, nil
	}
	ps := &products{kernel: k, cores: max(1, cfg.Cores), at: make(map[int]planned)}
	for i := range m.Products {
		p := &m.Products[i]
		plan, err := kernel.Prepare(p.forKernel(m.Frozen), int(pages)*PageSize)
		if err != nil {
			// The verifier has held the product against the tensors, these against the memory.
			return nil, refuse(fmt.Sprintf("product %d", i), "%v", err)
		}
		ps.at[p.First] = planned{plan, p.Count}
	}
	return ps, nil
}

// forKernel puts a verified product in the kernels' terms.
func (p *Product) forKernel(frozen []Tensor) kernel.Product {
	axes := func(list []Axis) (out []kernel.Axis) {
		for _, a := range list {
			out = append(out, kernel.Axis{Size: a[0], A: a[operandA], B: a[operandB], C: a[operandC]})
		}
		return out
	}
	k := kernel.Product{A: int(p.A), B: int(p.B), C: int(p.C),
		Batch: axes(p.Batch), Rows: axes(p.Rows), Cols: axes(p.Cols), Terms: axes(p.Terms)}
	if i := slices.IndexFunc(frozen, func(t Tensor) bool { return t.Name == p.NF4 && t.NF4 != nil }); i >= 0 {
		t := &frozen[i]
		k.NF4 = &kernel.NF4{Codes: int(t.Offset), Scales: int(t.NF4.Scales), Len: t.Len(), Block: t.NF4.Block}
	}
	return k
}

// run computes the product that starts at segment i, if one does. It returns the
// segments that this leaves out.
func (ps *products) run(ctx context.Context, host hostInstance, i int) (segments int, err error) {
	if ps == nil {
		return 0, nil
	}
	p, ok := ps.at[i]
	if !ok {
		return 0, nil
	}
	return p.segments, ps.kernel.Run(ctx, p.Plan, host.(*wazeroInstance).all, ps.cores)
}

//go:build !js

package wasm

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/starling-fl/starling/wasm/kernel"
)

// Kernels returns the names of what can compute declared products here, fastest
// first: kernels for the processor's vector units, then Twin.
func Kernels() []string { return kernelsThat(func(*kernel.Kernel) bool { return true }, Twin) }

// FusedKernels is Kernels for fused programs. The last is "go", which needs no
// instructions for it and is hundreds of times slower.
func FusedKernels() []string { return kernelsThat((*kernel.Kernel).Fuses, kernel.Plain.Name()) }

// kernelsThat returns the names of the kernels here that can do something, and of what is left where none can.
func kernelsThat(can func(*kernel.Kernel) bool, last string) []string {
	var names []string
	for _, k := range kernel.Native() {
		if can(k) {
			names = append(names, k.Name())
		}
	}
	return append(names, last)
}

// Fuses reports whether this host computes fused products at their speed: by
// instructions of its processor.
func Fuses() bool { return len(FusedKernels()) > 1 }

// products computes a program's declared products with a kernel of this host.
type products struct {
	kernel *kernel.Kernel
	cores  int
	at     map[int]planned // by first segment, of a step with all rounds
}

// planned is a product, ready for a kernel.
type planned struct {
	plan     *kernel.Plan
	segments int
}

// chooseKernel returns nil where the program's own code is to run.
func chooseKernel(m *Manifest, cfg Config) (*kernel.Kernel, error) {
	names := Kernels()
	if m.Fused {
		names = FusedKernels()
	}
	if m.Fused && cfg.Kernel == "" && !Fuses() {
		return nil, fmt.Errorf("%w: this processor lacks the instructions of the program's fused products", ErrArithmetic)
	}
	name := cmp.Or(cfg.Kernel, names[0])
	k, ok := kernel.ByName(name)
	switch {
	case m.Fused && (!ok || !k.Fuses()):
		return nil, fmt.Errorf("wasm: no kernel %.40q for fused products here, there are %s", name, strings.Join(names, ", "))
	case !ok && name != Twin:
		return nil, fmt.Errorf("wasm: no kernel %.40q here, there are %s", name, strings.Join(names, ", "))
	case name == Twin, cfg.Interpreter && !m.Fused:
		return nil, nil
	}
	return k, nil
}

// newProducts returns nil where the program's own code is to run.
func newProducts(mod *module, report *Report, cfg Config) (*products, error) {
	m, pages := mod.step, mod.pages
	if report.Relaxed {
		return nil, refuse("module", "it has relaxed SIMD, for browsers: the form for wazero runs here")
	}
	k, err := chooseKernel(m, cfg)
	if err != nil {
		return nil, err
	}
	if pages >= 1<<16 { // 4 GiB is more than a length of 32 bits can tell
		if m.Fused {
			return nil, refuse("memory section", "%d pages, limit %d for a fused program", pages, 1<<16-1)
		}
		k = nil
	}
	if k == nil {
		return nil, nil
	}
	ps := &products{kernel: k, cores: max(1, min(cfg.Cores, runtime.GOMAXPROCS(0))), at: make(map[int]planned)}
	for i := range m.Products {
		p := &m.Products[i]
		plan, err := kernel.Prepare(p.forKernel(m), int(pages)*PageSize)
		if err != nil {
			// The verifier has held the product against the tensors, these against the memory.
			return nil, refuse(fmt.Sprintf("product %d", i), "%v", err)
		}
		ps.at[p.First] = planned{plan: plan, segments: p.Count}
	}
	return ps, nil
}

// forKernel puts a verified product in the kernels' terms.
func (p *Product) forKernel(m *Manifest) kernel.Product {
	axes := func(list []Axis) (out []kernel.Axis) {
		for _, a := range list {
			out = append(out, kernel.Axis{Size: a[0], A: a[operandA], B: a[operandB], C: a[operandC]})
		}
		return out
	}
	k := kernel.Product{A: int(p.A), B: int(p.B), C: int(p.C), Fused: m.Fused,
		Batch: axes(p.Batch), Rows: axes(p.Rows), Cols: axes(p.Cols), Terms: axes(p.Terms)}
	if p.NF4 > 0 {
		t := &m.Frozen[p.NF4-1]
		k.NF4 = &kernel.NF4{Codes: int(t.Offset), Scales: int(t.NF4.Scales), Len: t.Len(), Block: t.NF4.Block}
	}
	return k
}

// begin readies a host's instance for products one after the other: until the
// function it returns is called, helpers wait for them.
func (ps *products) begin(host hostInstance) (end func()) {
	if ps == nil || ps.cores == 1 {
		return func() {}
	}
	in := host.(*wazeroInstance)
	in.team = kernel.NewTeam(ps.cores)
	return func() {
		in.team.Stop()
		in.team = nil
	}
}

// run computes the product that starts at segment i, if one does. It returns
// the segments that this leaves out.
func (ps *products) run(ctx context.Context, host hostInstance, i int) (segments int, err error) {
	if ps == nil {
		return 0, nil
	}
	p, ok := ps.at[i]
	if !ok {
		return 0, nil
	}
	in := host.(*wazeroInstance)
	return p.segments, ps.kernel.Run(ctx, p.plan, in.all, in.team)
}

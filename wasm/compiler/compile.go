package compiler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/quant/nf4"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler/codegen"
	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
	"github.com/starling-fl/starling/wasm/cost"
)

// Version is written into every program's manifest. It changes with everything that changes programs' bytes.
const Version = "starling-wasm/11"

// The hosts that code is shaped for. Programs run on both, with equal results.
const (
	HostWazero = "wazero"
	HostV8     = "v8"
)

// Role says what a parameter of the graph is to the program.
type Role int

// The roles.
const (
	Input  Role = iota // written before every step
	State              // kept and replaced by every step
	Frozen             // written once
)

// Param gives a parameter of the graph its role. Parameters that are not named are inputs.
type Param struct {
	Name string
	Role Role
	NF4  bool // frozen float32 only: is in memory as 4-bit codes (package nf4)
}

// Output names a result of the graph.
type Output struct {
	Name  string
	State string // the state parameter whose new value this is, or empty
}

// Spec says what a graph does not.
type Spec struct {
	Name string // of the program, for people
	Host string // HostWazero or HostV8
	// Fused adds every term of a declared product with one rounding, a fused multiply-add: on hosts that have it twice as
	// fast, with other bits, equal among those hosts. A program for HostWazero then holds no code for its products.
	Fused   bool
	Params  []Param
	Outputs []Output // one for each node that the build function returns, in order
	// Memory is the most bytes that the program may take; more is ErrMemory. 0, and more than that, is 2 GiB.
	Memory int
	// Stop is asked now and then; an error of it ends the compilation, which may take seconds. Nil never does.
	Stop func() error

	flat bool   // no repeats, no conditions, no reuse
	most uint64 // units of a call, beyond which it is cut; 0: what devices run
}

// ErrMemory is a program that would take more memory than it may.
var ErrMemory = errors.New("compiler: the program takes more memory than it may")

// Compile builds a graph and turns it into a program: a WebAssembly module as package wasm defines it. Parameters and
// outputs are float32 or int32. The same graph and Spec give the same bytes.
func Compile(build func(g *graph.Graph) []*graph.Node, spec Spec) (program []byte, err error) {
	g, err := Record(build)
	if err != nil {
		return nil, err
	}
	return CompileGraph(g, spec)
}

// Record builds a graph and returns what was recorded. Panics of graph building are returned as errors.
func Record(build func(g *graph.Graph) []*graph.Node) (rec *ir.Graph, err error) {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(error); ok {
				err = fmt.Errorf("compiler: building the graph: %w", e)
			} else {
				err = fmt.Errorf("compiler: building the graph: %v", r)
			}
		}
	}()
	b := New()
	b.record = true
	g := graph.NewGraph(compute.Backend(b), "program")
	outputs := build(g)
	if err := g.Compile(outputs...); err != nil {
		return nil, fmt.Errorf("compiler: %w", err)
	}
	return g.Executable().(*recording).graph, nil
}

// CompileGraph compiles a recorded graph.
func CompileGraph(g *ir.Graph, spec Spec) ([]byte, error) {
	m, err := compileGraph(g, spec)
	if err != nil {
		return nil, err
	}
	return m.bytes()
}

func compileGraph(g *ir.Graph, spec Spec) (*assembled, error) {
	if len(spec.Outputs) != len(g.Outputs) {
		return nil, fmt.Errorf("compiler: %d outputs named, the graph has %d", len(spec.Outputs), len(g.Outputs))
	}
	roles := make([]Param, len(g.Params))
	for i, p := range g.Params {
		roles[i].Name = p.Name
		if p.DType != ir.F32 && p.DType != ir.I32 {
			return nil, fmt.Errorf("compiler: parameter %q is %s; programs take f32 and i32", p.Name, p.DType)
		}
	}
	index := func(name string) int {
		return slices.IndexFunc(g.Params, func(p *ir.Node) bool { return p.Name == name })
	}
	for _, p := range spec.Params {
		i := index(p.Name)
		if i < 0 {
			return nil, fmt.Errorf("compiler: the graph has no parameter %q", p.Name)
		}
		if p.NF4 && (p.Role != Frozen || g.Params[i].DType != ir.F32 || len(g.Params[i].Dims) == 0) {
			return nil, fmt.Errorf("compiler: parameter %q cannot be NF4: not a frozen float32 tensor", p.Name)
		}
		roles[i] = p
	}
	cfg := plan.Config{Becomes: make([]int, len(g.Outputs)), NF4: make([]bool, len(g.Params)), Stop: spec.Stop, Flat: spec.flat}
	replaced := map[int]bool{}
	for i, o := range spec.Outputs {
		cfg.Becomes[i] = -1
		if o.State == "" {
			if d := g.Outputs[i].DType; d != ir.F32 && d != ir.I32 {
				return nil, fmt.Errorf("compiler: output %q is %s; programs give f32 and i32", o.Name, d)
			}
			continue
		}
		j := index(o.State)
		switch {
		case j < 0 || roles[j].Role != State:
			return nil, fmt.Errorf("compiler: output %q becomes %q, which is not a state parameter", o.Name, o.State)
		case replaced[j]:
			return nil, fmt.Errorf("compiler: two outputs become the state %q", o.State)
		case g.Params[j].DType != g.Outputs[i].DType || !slices.Equal(g.Params[j].Dims, g.Outputs[i].Dims):
			return nil, fmt.Errorf("compiler: output %q is %s%v, the state %q is %s%v", o.Name, g.Outputs[i].DType,
				g.Outputs[i].Dims, o.State, g.Params[j].DType, g.Params[j].Dims)
		}
		replaced[j] = true
		cfg.Becomes[i] = j
	}
	codes, frozen := make([]int, len(roles)), 0
	for i, r := range roles {
		if cfg.NF4[i] = r.NF4; r.Role == Frozen {
			frozen++
			codes[i] = frozen
		}
	}
	pages := uint64(maxPages)
	if spec.Memory > 0 {
		pages = min(pages, uint64(spec.Memory)/pageBytes)
	}
	m, p, err := assemble(g, planning{cfg, codes, int(pages)}, spec.Host, spec.Fused, cmp.Or(spec.most, longest))
	if err != nil {
		return nil, err
	}
	m.manifest.Name = spec.Name
	tensor := func(name string, n *ir.Node, b *plan.Buffer) wasm.Tensor {
		t := wasm.Tensor{Name: name, DType: wasm.Float32, Shape: append([]int{}, n.Dims...), Offset: uint32(b.Addr)}
		if n.DType == ir.I32 {
			t.DType = wasm.Int32
		}
		if b.NF4 {
			t.NF4 = &wasm.NF4{Block: codegen.NF4Block, Scales: uint32(b.Scales)}
		}
		return t
	}
	for i, n := range g.Params {
		t := tensor(n.Name, n, p.Params[i])
		switch roles[i].Role {
		case Input:
			m.manifest.Inputs = append(m.manifest.Inputs, t)
		case State:
			m.manifest.State = append(m.manifest.State, t)
		case Frozen:
			m.manifest.Frozen = append(m.manifest.Frozen, t)
		}
	}
	for i, o := range spec.Outputs {
		if o.State == "" {
			m.manifest.Outputs = append(m.manifest.Outputs, tensor(o.Name, g.Outputs[i], p.Outputs[i]))
		}
	}
	return m, nil
}

// assembled is a module with its manifest, before the tensors are named.
type assembled struct {
	module   *emit.Module
	segments []*emit.Func
	manifest *wasm.Manifest
}

// bytes refuses what devices would.
func (a *assembled) bytes() ([]byte, error) {
	for i, f := range a.segments {
		if f.Cost() > cost.Segment {
			return nil, fmt.Errorf("compiler: segment %d costs up to %d units, devices run at most %d", i, f.Cost(), uint64(cost.Segment))
		}
	}
	b, err := a.manifest.AppendSection(a.module.Bytes())
	if err != nil {
		return nil, fmt.Errorf("compiler: %w", err)
	}
	return b, nil
}

const (
	tableAddr = 1024     // the NF4 pair table, where it is needed
	dataAddr  = 4096     // constants and tensors
	pageBytes = 64 << 10 // of WebAssembly memory
	maxPages  = 1 << 15  // 2 GiB: addresses are positive as signed numbers

	longest = cost.Segment - 1<<10 // units of a call, which leaves a segment's own for its arguments
)

// planning is what a graph does not say to its plan, and what its plan does not say to products.
type planning struct {
	plan.Config
	codes []int // each parameter's place among the frozen ones, from 1; 0: it is not frozen
	pages int   // of memory, at most
}

// assemble plans a graph and writes its code.
func assemble(g *ir.Graph, cfg planning, host string, fused bool, most uint64) (*assembled, *plan.Plan, error) {
	shape := codegen.Wazero
	switch host {
	case HostWazero:
	case HostV8:
		shape = codegen.V8
		if fused {
			shape = codegen.V8Fused
		}
	default:
		return nil, nil, fmt.Errorf("compiler: unknown host %q, need %q or %q", host, HostWazero, HostV8)
	}
	p, err := plan.Build(g, cfg.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("compiler: %w", err)
	}
	arena, end := p.Layout(dataAddr)
	// What packing takes on the host where it takes most counts on all: hosts of one job must choose alike.
	if takes := end + codegen.LargestScratch(p.Stages); int64(takes) > int64(cfg.pages)*pageBytes {
		return nil, nil, tooMuch(takes, cfg.pages)
	}
	m := &emit.Module{}
	gen := codegen.New(m, shape, end, tableAddr)
	gen.Most = most
	gen.Reserve(p.Stages)
	w := &writer{gen: gen, fused: fused, codes: cfg.codes, cfg: cfg.Config}
	if err := w.step(p); err != nil {
		return nil, nil, err
	}
	man := &wasm.Manifest{Format: wasm.Format, Compiler: Version, Host: host, Fused: fused}
	segments := w.finish(man)
	for i, f := range segments {
		m.Export(fmt.Sprintf("s%d", i), f)
	}
	if gen.NeedTable {
		m.Data(tableAddr, codegen.NF4Table(nf4.Levels))
	}
	for _, c := range p.Consts {
		m.Data(uint32(c.Addr), c.Const)
	}
	total := end + gen.Scratch
	pages := max(1, (total+pageBytes-1)/pageBytes)
	m.Pages(uint32(pages))
	man.Arena = wasm.Region{Offset: uint32(arena), Size: uint32((total - arena + 15) &^ 15)}
	return &assembled{m, segments, man}, p, nil
}

func tooMuch(bytes, pages int) error {
	return fmt.Errorf("%w: %d MiB, its limit is %d", ErrMemory, (bytes+1<<20-1)>>20, pages>>4)
}

func stopped(cfg plan.Config) error {
	if cfg.Stop == nil {
		return nil
	}
	if err := cfg.Stop(); err != nil {
		return fmt.Errorf("compiler: %w", err)
	}
	return nil
}

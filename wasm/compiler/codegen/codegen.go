// Package codegen writes the WebAssembly of a plan: one function for each distinct loop, shared by all places that
// differ only in addresses; packing and inner kernels of matrix products; and the exported segments that call them.
//
//	gen := codegen.New(module, codegen.Wazero, scratch, table)
//
// All loops have constant trip counts, in the shapes that package wasm's verifier can prove to end.
//
// Two code shapes exist because hosts differ. wazero checks bounds once for a base and constant offsets within a basic
// block, so its bodies are unrolled with offsets; V8 guards memory by page faults and compiles short bodies better.
// Every value is computed by the same floating-point operations in the same order in both.
package codegen

import (
	"fmt"
	"math"

	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
	"github.com/starling-fl/starling/wasm/cost"
)

// Shape holds the differences between hosts.
type Shape struct {
	Unroll    int // vectors a trip of an elementwise loop
	DotUnroll int // terms a trip of the inner loop of a matrix product
	Rows      int // of C held in registers
	Cols      int // of C held in registers, a multiple of 4
	// Touch reads the highest address of a block of accesses first, so that a host which checks bounds in software
	// checks once.
	Touch bool
	// Parts cuts products for several workers; a host with kernels has better.
	Parts bool
	// Fused writes fused products with f32x4.relaxed_madd; without it nothing can be written for them.
	Fused bool
}

// The code shapes.
var (
	Wazero = Shape{Unroll: 4, DotUnroll: 8, Rows: 4, Cols: 8, Touch: true}
	V8     = Shape{Unroll: 2, DotUnroll: 1, Rows: 4, Cols: 8, Parts: true}
	// V8Fused has taller tiles, since a sum needs no additional register.
	V8Fused = Shape{Unroll: 2, DotUnroll: 1, Rows: 6, Cols: 8, Parts: true, Fused: true}
)

// Unit is the least piece of work that can be put into a segment: one call with constant addresses.
type Unit struct {
	Func *emit.Func
	Args []int32
	// FLOPs counts the floating-point operations of matrix products.
	FLOPs uint64
	// Part of a matrix product that this belongs to: units of different parts may run at once.
	Part int
}

// Cost is the most that a segment spends on the unit, in the units of package cost.
func (u Unit) Cost() uint64 {
	return uint64(len(u.Args))*cost.Move + cost.Plain + u.Func.Cost()
}

// Generator writes functions into a module.
type Generator struct {
	M       *emit.Module
	Shape   Shape
	scratch int // address of the packing scratch
	lane    int // bytes of it for each part of a product
	Scratch int // bytes of it that are needed
	table   int // address of the NF4 pair table
	// Most is the cost above which calls are divided where possible.
	Most uint64
	// NeedTable is set when NF4 code was written, which reads the pair table.
	NeedTable bool
}

// New returns a generator; scratch and table are addresses set aside for packing and for the NF4 table.
func New(m *emit.Module, shape Shape, scratch, table int) *Generator {
	return &Generator{M: m, Shape: shape, scratch: scratch, table: table, Most: math.MaxUint64}
}

// Trap writes a function in place of a fused product that no code can compute. In a repeat it takes the
// round.
func (g *Generator) Trap(params ...emit.ValType) *emit.Func {
	f := g.M.NewFunc(params...)
	f.Op(emit.Unreachable)
	return g.M.Adopt(f)
}

// Stage writes the code of one stage and returns the calls that run it. fused says that a matrix product adds every term
// with one rounding.
func (g *Generator) Stage(s plan.Stage, fused bool) ([]Unit, error) {
	switch s := s.(type) {
	case *plan.Loop:
		u, ok := g.loop(s)
		if !ok {
			return nil, nil
		}
		return []Unit{u}, nil
	case *plan.Dot:
		return g.dot(s, fused), nil
	case *plan.Direct:
		u, err := g.direct(s)
		if err != nil {
			return nil, err
		}
		return []Unit{u}, nil
	}
	return nil, fmt.Errorf("codegen: unknown step %T", s)
}

func repeat(t emit.ValType, n int) []emit.ValType {
	ts := make([]emit.ValType, n)
	for i := range ts {
		ts[i] = t
	}
	return ts
}

// loadOp and storeOp are the scalar accesses of a dtype in memory.
func loadOp(d ir.DType) emit.Opcode {
	return [...]emit.Opcode{ir.F32: emit.F32Load, ir.I32: emit.I32Load, ir.I64: emit.I64Load, ir.Bool: emit.I32Load8U}[d]
}

func storeOp(d ir.DType) emit.Opcode {
	return [...]emit.Opcode{ir.F32: emit.F32Store, ir.I32: emit.I32Store, ir.I64: emit.I64Store, ir.Bool: emit.I32Store8}[d]
}

// valType is the type of a scalar of a dtype on the stack.
func valType(d ir.DType) emit.ValType {
	return [...]emit.ValType{ir.F32: emit.F32, ir.I32: emit.I32, ir.I64: emit.I64, ir.Bool: emit.I32}[d]
}

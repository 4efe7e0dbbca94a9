package codegen

import (
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/emit"
)

// Moving is a unit of a repeat: its arguments in round 0, and how each follows from the round's number.
type Moving struct {
	Unit
	Moves []Move
}

// Move of an argument: it grows by Step each round, and is Odd larger in every other one.
type Move struct{ Step, Odd int64 }

// leastCalls of one function with evenly spaced arguments become a loop.
const leastCalls = 3

// Segment writes a function without parameters that runs units one after the other.
func (g *Generator) Segment(units []Unit) *emit.Func {
	moving := make([]Moving, len(units))
	for i, u := range units {
		moving[i] = Moving{u, make([]Move, len(u.Args))}
	}
	f := g.M.NewFunc()
	calls(f, moving)
	return g.M.Adopt(f)
}

// Round writes a function that takes the number of a round and runs units one after the other.
func (g *Generator) Round(units []Moving) *emit.Func {
	f := g.M.NewFunc(emit.I32)
	calls(f, units)
	return g.M.Adopt(f)
}

// calls writes calls of units.
func calls(f *emit.Func, units []Moving) {
	var counter []emit.Local // of loops: one for all
	for len(units) > 0 {
		n, strides := even(units)
		if n < leastCalls {
			call(f, units[0], nil, 0)
			units = units[1:]
			continue
		}
		if counter == nil {
			counter = append(counter, f.New(emit.I32))
		}
		f.LoopUp(counter[0], n, 1, func() { call(f, units[0], strides, counter[0]) })
		units = units[n:]
	}
}

// call writes one call: of a unit, or of as many as i counts, whose arguments are apart by strides.
func call(f *emit.Func, u Moving, strides []int32, i emit.Local) {
	plus := func(l emit.Local, times int32) {
		f.Get(l)
		f.I32(times)
		f.Op(emit.I32Mul)
		f.Op(emit.I32Add)
	}
	for j, a := range u.Args {
		f.I32(a)
		if s := u.Moves[j].Step; s != 0 {
			plus(f.Param(0), int32(s))
		}
		if o := u.Moves[j].Odd; o != 0 {
			f.Get(f.Param(0))
			f.I32(1)
			f.Op(emit.I32And)
			f.I32(int32(o))
			f.Op(emit.I32Mul)
			f.Op(emit.I32Add)
		}
		if strides != nil && strides[j] != 0 {
			plus(i, strides[j])
		}
	}
	f.Call(u.Func)
}

// even returns how many units from the first on call one function with arguments that are evenly spaced, and by how much.
func even(units []Moving) (n int, strides []int32) {
	first := units[0]
	for n = 1; n < len(units); n++ {
		u, last := units[n], units[n-1]
		if u.Func != first.Func || len(u.Args) != len(first.Args) || !slices.Equal(u.Moves, first.Moves) {
			return n, strides
		}
		apart := make([]int32, len(u.Args))
		for j := range apart {
			apart[j] = u.Args[j] - last.Args[j]
		}
		if strides == nil {
			strides = apart
		}
		if !slices.Equal(strides, apart) {
			return n, strides
		}
	}
	return n, strides
}

package plan

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// A Repeat is a run of stages that does the same Rounds times at other addresses: a model's layers, a vocabulary's blocks.
// Stages[First+r*Count+k] differs from Stages[First+k] in what it refers to alone.
type Repeat struct{ First, Count, Rounds int }

const (
	leastRounds = 3  // of a repeat: fewer are not worth a loop
	multiples   = 4  // of the shortest period that are tried where buffers do not fit it
	mostRepeats = 64 // of a plan
	mostTries   = 16 // of runs between two others, whose buffers may not fit
)

// repeats finds runs of equal stages, the ones that save most first, and returns them in their order. fits says whether
// a run's buffers can be placed so that addresses move evenly from round to round.
func repeats(stages []Stage, when map[Stage]*Buffer, fits func(Repeat) bool) []Repeat {
	ids := make([]int, len(stages))
	known := map[string]int{}
	for i, s := range stages {
		key := fmt.Sprintf("%p", when[s]) + signature(s)
		id, ok := known[key]
		if !ok {
			id = len(known)
			known[key] = id
		}
		ids[i] = id
	}
	var found []Repeat
	var search func(from, to int)
	search = func(from, to int) {
		for tried := map[Repeat]bool{}; len(found) < mostRepeats && len(tried) < mostTries; {
			best := longestRun(ids, from, to, tried)
			if best.Rounds == 0 {
				return
			}
			tried[best] = true
			for m := 1; m <= multiples; m++ {
				r := Repeat{best.First, best.Count * m, best.Rounds / m}
				if r.Rounds >= leastRounds && fits(r) {
					found = append(found, r)
					search(from, r.First)
					search(r.First+r.Count*r.Rounds, to)
					return
				}
			}
		}
	}
	search(0, len(stages))
	slices.SortFunc(found, func(a, b Repeat) int { return a.First - b.First })
	return found
}

// longestRun returns the run between from and to that leaves most stages out, of those that were not tried.
func longestRun(ids []int, from, to int, tried map[Repeat]bool) (best Repeat) {
	saved := 0
	for period := 1; period <= (to-from)/leastRounds; period++ {
		run := 0
		for i := to - 1; i >= from; i-- {
			if i+period < to && ids[i] == ids[i+period] {
				run++
			} else {
				run = 0
			}
			rounds := run/period + 1
			r := Repeat{i, period, rounds}
			if rounds >= leastRounds && run%period == 0 && (rounds-1)*period > saved && !tried[r] {
				best, saved = r, (rounds-1)*period
			}
		}
	}
	return best
}

// signature is what two stages have in common that differ in what they refer to alone.
func signature(s Stage) string {
	var b []byte
	num := func(ns ...int) {
		b = binary.AppendVarint(b, int64(len(ns)))
		for _, n := range ns {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	ref := func(r Ref) {
		kind := 0
		for i, is := range []bool{r.Buf.Fixed, r.Buf.NF4, r.Buf.Const != nil} {
			if is {
				kind |= 1 << i
			}
		}
		num(kind, r.Buf.Bytes)
	}
	leaf := func(l Leaf) {
		ref(l.Ref)
		num(int(l.DType))
		num(l.Strides...)
	}
	switch s := s.(type) {
	case *Loop:
		num(0, s.Kept, int(s.Reduce), len(s.Leaves), len(s.Outs))
		num(s.Sizes...)
		for _, l := range s.Leaves {
			leaf(l)
		}
		seen := map[*Value]int{}
		var value func(v *Value)
		value = func(v *Value) {
			if at, ok := seen[v]; ok {
				num(-1, at)
				return
			}
			seen[v] = len(seen)
			num(int(v.Op), int(v.DType), v.Leaf, int(v.Bits), v.Base, len(v.In))
			num(v.Strides...)
			for _, in := range v.In {
				value(in)
			}
		}
		for _, o := range s.Outs {
			value(o.Value)
			leaf(o.Leaf)
		}
	case *Dot:
		num(1)
		for _, r := range []Ref{s.A, s.B, s.C} {
			ref(r)
		}
		for _, axes := range [][]Axis{s.Batch, s.M, s.N, s.K} {
			num(len(axes))
			for _, a := range axes {
				num(a.Size, a.A, a.B, a.C)
			}
		}
	case *Direct:
		num(2)
		for _, r := range s.In {
			ref(r)
		}
		ref(s.Out)
		for _, n := range append([]*ir.Node{s.Node}, s.Node.In...) {
			b = append(b, n.Kind()...)
		}
	}
	return string(b)
}

package compiler

import (
	"reflect"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler/codegen"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// folded is one round of a repeat that stands for all.
type folded struct {
	segments []foldedSegment
	products []wasm.Product
}

type foldedSegment struct {
	units []codegen.Moving
	trap  bool
	flops uint64
	when  *plan.Buffer
}

// fold makes the rounds of a repeat one, where their segments call the same functions and every address follows from the
// round's number.
func (w *writer) fold(r rounds) (f folded, ok bool) {
	n := len(r.segments) - 1
	count, products := r.segments[1]-r.segments[0], r.products[1]-r.products[0]
	for i := range n {
		if r.segments[i+1]-r.segments[i] != count || r.products[i+1]-r.products[i] != products {
			return f, false
		}
	}
	for i := range count {
		series := make([]segment, n)
		for round := range series {
			series[round] = w.segments[r.segments[round]+i]
		}
		s, ok := foldSegment(series)
		if !ok {
			return f, false
		}
		f.segments = append(f.segments, s)
	}
	for i := range products {
		series := make([]wasm.Product, n)
		for round := range series {
			series[round] = w.products[r.products[round]+i]
			series[round].First -= round * count
		}
		p, ok := foldProduct(series)
		if !ok {
			return f, false
		}
		f.products = append(f.products, p)
	}
	return f, true
}

func foldSegment(series []segment) (s foldedSegment, ok bool) {
	first := series[0]
	s = foldedSegment{trap: first.trap, flops: first.flops, when: first.when}
	for _, o := range series {
		if len(o.units) != len(first.units) || o.trap != first.trap || o.flops != first.flops || o.when != first.when {
			return s, false
		}
	}
	for i, u := range first.units {
		m := codegen.Moving{Unit: u}
		for _, o := range series {
			if o.units[i].Func != u.Func || len(o.units[i].Args) != len(u.Args) {
				return s, false
			}
		}
		for j := range u.Args {
			move, ok := moveOf(len(series), func(round int) int64 { return int64(series[round].units[i].Args[j]) })
			if !ok {
				return s, false
			}
			m.Moves = append(m.Moves, codegen.Move(move))
		}
		s.units = append(s.units, m)
	}
	return s, true
}

func foldProduct(series []wasm.Product) (p wasm.Product, ok bool) {
	p = series[0]
	for _, o := range series {
		o.A, o.B, o.C, o.NF4 = p.A, p.B, p.C, p.NF4
		if !reflect.DeepEqual(o, p) {
			return p, false
		}
	}
	p.Moves = &wasm.Moves{}
	for _, m := range []struct {
		to   *wasm.Move
		from func(p *wasm.Product) int64
	}{
		{&p.Moves.A, func(p *wasm.Product) int64 { return int64(p.A) }},
		{&p.Moves.B, func(p *wasm.Product) int64 { return int64(p.B) }},
		{&p.Moves.C, func(p *wasm.Product) int64 { return int64(p.C) }},
		{&p.Moves.NF4, func(p *wasm.Product) int64 { return int64(p.NF4) }},
	} {
		if *m.to, ok = moveOf(len(series), func(round int) int64 { return m.from(&series[round]) }); !ok {
			return p, false
		}
	}
	return p, true
}

// moveOf finds how a number moves that is known for three rounds or more. ok is false where it does not move evenly.
func moveOf(rounds int, at func(round int) int64) (m wasm.Move, ok bool) {
	m.Step = (at(2) - at(0)) / 2
	m.Odd = at(1) - at(0) - m.Step
	for round := range rounds {
		if m.At(at(0), round) != at(round) {
			return m, false
		}
	}
	return m, true
}

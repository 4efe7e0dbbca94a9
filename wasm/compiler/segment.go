package compiler

import (
	"fmt"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler/codegen"
	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/plan"
	"github.com/starling-fl/starling/wasm/cost"
)

// segment is one segment of a step, before its function is written: calls, or a trap where a fused product has no code.
type segment struct {
	units []codegen.Unit
	trap  bool
	flops uint64
	when  *plan.Buffer // of the condition it runs under, or nil
}

// writer cuts a plan's stages into segments. Those of a repeat stand round after round, as if there were none: finish
// sees whether they are alike.
type writer struct {
	gen   *codegen.Generator
	cfg   plan.Config
	fused bool
	codes []int // each parameter's place among the frozen ones

	segments []segment
	products []wasm.Product
	rounds   []rounds

	batch []codegen.Unit // of the segment that is being gathered
	units uint64
	when  *plan.Buffer // of the stage at hand
}

// rounds are where the rounds of a repeat begin among segments and products, and where the last one ends.
type rounds struct{ segments, products []int }

// step writes a plan's stages.
func (w *writer) step(p *plan.Plan) error {
	place := make(map[*plan.Buffer]int)
	for i, b := range p.Params {
		if i < len(w.codes) {
			place[b] = w.codes[i]
		}
	}
	repeats := p.Repeats
	var in *rounds // the repeat that stages are of
	var count, ends int
	for i, s := range p.Stages {
		if in == nil && len(repeats) > 0 && repeats[0].First == i {
			r := repeats[0]
			repeats = repeats[1:]
			w.rounds = append(w.rounds, rounds{})
			in, count, ends = &w.rounds[len(w.rounds)-1], r.Count, i+r.Count*r.Rounds
		}
		if in != nil && (ends-i)%count == 0 {
			w.mark(in)
		}
		if when := p.When[s]; when != w.when {
			w.flush()
			w.when = when
		}
		if err := w.stage(s, place); err != nil {
			return err
		}
		if in != nil && i+1 == ends {
			w.mark(in)
			in = nil
		}
	}
	w.flush()
	if len(w.segments) == 0 { // nothing to compute: an empty step
		w.segments = append(w.segments, segment{})
	}
	return nil
}

// mark begins a round, or ends the last one.
func (w *writer) mark(r *rounds) {
	w.flush()
	r.segments = append(r.segments, len(w.segments))
	r.products = append(r.products, len(w.products))
}

func (w *writer) flush() {
	if len(w.batch) == 0 {
		return
	}
	s := segment{units: w.batch, when: w.when}
	for _, u := range w.batch {
		s.flops += u.FLOPs
	}
	w.segments = append(w.segments, s)
	w.batch, w.units = nil, 0
}

func (w *writer) stage(s plan.Stage, place map[*plan.Buffer]int) error {
	pieces, err := w.gen.Pieces(s)
	if err != nil {
		return fmt.Errorf("compiler: %w", err)
	}
	for _, s := range pieces {
		if err := stopped(w.cfg); err != nil {
			return err
		}
		if err := w.piece(s, place); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) piece(s plan.Stage, place map[*plan.Buffer]int) error {
	product, ok := declare(s, place)
	if ok { // a declared product has its segments to itself
		w.flush()
		product.First = len(w.segments)
	}
	if ok && w.fused && !w.gen.Shape.Fused {
		product.Count = trapsFor(&product)
		for range product.Count {
			w.segments = append(w.segments, segment{trap: true, when: w.when, flops: 2 * product.MultiplyAdds() / uint64(product.Count)})
		}
		w.products = append(w.products, product)
		return nil
	}
	calls, err := w.gen.Stage(s, ok && w.fused)
	if err != nil {
		return fmt.Errorf("compiler: %w", err)
	}
	var parts []int // where each ends among the segments
	for i, u := range calls {
		if i > 0 && u.Part != calls[i-1].Part {
			w.flush()
			parts = append(parts, len(w.segments))
		}
		if cost.Add(w.units, u.Cost()) > cost.Short {
			w.flush()
		}
		w.batch = append(w.batch, u)
		w.units = cost.Add(w.units, u.Cost())
	}
	if ok {
		w.flush()
		endProduct(&product, append(parts, len(w.segments)))
		w.products = append(w.products, product)
	}
	return nil
}

// finish writes the segments' functions, one for all rounds of a repeat where they are alike, and what the manifest says
// of them.
func (w *writer) finish(man *wasm.Manifest) (funcs []*emit.Func) {
	segment, product := 0, 0 // so far
	plain := func(segments, products int) {
		behind := len(funcs) - segment
		for ; segment < segments; segment++ {
			s := w.segments[segment]
			f := w.gen.Segment(s.units)
			if s.trap {
				f = w.gen.Trap()
			}
			funcs = append(funcs, f)
			man.Segments = append(man.Segments, wasm.Segment{FLOPs: s.flops, When: address(s.when)})
			man.FLOPs += s.flops
		}
		for ; product < products; product++ {
			p := w.products[product]
			p.First += behind
			man.Products = append(man.Products, p)
		}
	}
	for _, r := range w.rounds {
		folded, ok := w.fold(r)
		if !ok {
			continue
		}
		plain(r.segments[0], r.products[0])
		behind := len(funcs) - segment
		n := len(r.segments) - 1
		man.Repeats = append(man.Repeats, wasm.Repeat{First: len(funcs), Count: len(folded.segments), Rounds: n})
		for _, s := range folded.segments {
			f := w.gen.Round(s.units)
			if s.trap {
				f = w.gen.Trap(emit.I32)
			}
			funcs = append(funcs, f)
			man.Segments = append(man.Segments, wasm.Segment{FLOPs: s.flops, When: address(s.when)})
			man.FLOPs += uint64(n) * s.flops
		}
		for _, p := range folded.products {
			p.First += behind
			man.Products = append(man.Products, p)
		}
		segment, product = r.segments[n], r.products[n]
	}
	plain(len(w.segments), len(w.products))
	return funcs
}

// address is a condition's in the manifest: 0 where there is none.
func address(when *plan.Buffer) uint32 {
	if when == nil {
		return 0
	}
	return uint32(when.Addr)
}

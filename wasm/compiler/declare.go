package compiler

import (
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// declare describes a matrix product to hosts that have kernels of their own. A product of a constant is not declared:
// constants are in no tensor of the manifest. place is of frozen tensors among each other, from 1.
func declare(s plan.Stage, place map[*plan.Buffer]int) (p wasm.Product, ok bool) {
	d, ok := s.(*plan.Dot)
	if !ok || d.A.Buf.Const != nil || d.B.Buf.Const != nil {
		return p, false
	}
	p = wasm.Product{A: uint32(d.A.Addr()), B: uint32(d.B.Addr()), C: uint32(d.C.Addr()),
		Batch: axes(d.Batch), Rows: axes(d.M), Cols: axes(d.N), Terms: axes(d.K)}
	if d.B.Buf.NF4 {
		p.NF4, p.B = place[d.B.Buf], uint32(d.B.Off/4)
	}
	return p, true
}

func axes(list []plan.Axis) (out []wasm.Axis) {
	for _, a := range list {
		out = append(out, wasm.Axis{a.Size, a.A, a.B, a.C})
	}
	return out
}

// trapsFor is the number of segments that a product without code stands for: the loader grants each a segment's work.
func trapsFor(p *wasm.Product) int {
	const most = 1 << 27 // multiply-adds: half of the loader's limit
	return int((p.MultiplyAdds() + most - 1) / most)
}

// endProduct says where among the segments the parts of a product end, the last one with it.
func endProduct(p *wasm.Product, ends []int) {
	from := p.First
	for _, end := range ends {
		p.Parts = append(p.Parts, end-from)
		from = end
	}
	if p.Count = from - p.First; len(ends) == 1 {
		p.Parts = nil
	}
}

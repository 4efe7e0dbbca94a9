package plan

import (
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// reuse lets a loop write its result where one of its operands stands that nothing reads later: less memory, and what is
// in a cache already. Only a loop of one result does: of several, one might be written before another is computed.
func (p *Plan) reuse(under map[*ir.Node]*ir.Node) {
	arena := map[*Buffer]bool{}
	for _, b := range p.Arena {
		arena[b] = true
	}
	p.live()
	into := map[*Buffer]*Buffer{}
	for i, s := range p.Stages {
		each(s, func(r *Ref) {
			if b := into[r.Buf]; b != nil {
				r.Buf = b
			}
		})
		l, ok := s.(*Loop)
		if !ok || l.Reduce != ir.Invalid || len(l.Outs) != 1 {
			continue
		}
		o := l.Outs[0]
		if !arena[o.Buf] || o.Buf.life.first != i || under[o.Buf.Node] != nil {
			continue
		}
		for _, leaf := range l.Leaves {
			b := leaf.Buf
			refs := 0
			for _, other := range l.Leaves {
				if other.Buf == b {
					refs++
				}
			}
			if refs == 1 && arena[b] && b.life.last == i && under[b.Node] == nil && b.Bytes == o.Buf.Bytes && leaf.Off == o.Off &&
				leaf.DType.Size() == o.DType.Size() && slices.Equal(leaf.Strides, o.Strides) {
				into[o.Buf] = b // for the stages behind this one
				b.life.last = o.Buf.life.last
				l.Outs[0].Buf = b
				break
			}
		}
	}
	p.Arena = slices.DeleteFunc(p.Arena, func(b *Buffer) bool { return into[b] != nil })
}

package plan

import (
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// forget leaves out of loops what nothing reads. A value is stored where several operations use it; where all of them
// came to share its loop, they have it in a register, and the store costs more than computing it did.
func (p *Plan) forget() {
	read := map[*Buffer]bool{}
	for _, s := range p.Stages {
		for _, b := range s.reads() {
			read[b] = true
		}
	}
	dead := func(b *Buffer) bool { return !read[b] && slices.Contains(p.Arena, b) }
	for _, s := range p.Stages {
		l, ok := s.(*Loop)
		if !ok || l.Reduce != ir.Invalid {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(l.Outs), func(o Out) bool { return dead(o.Buf) })
		if len(kept) == 0 { // nothing of it is wanted: the graph's dead nodes are not planned, so this does not come up
			continue
		}
		for _, o := range l.Outs {
			if !slices.ContainsFunc(kept, func(k Out) bool { return k.Buf == o.Buf }) {
				p.Arena = slices.DeleteFunc(p.Arena, func(b *Buffer) bool { return b == o.Buf })
			}
		}
		l.Outs = kept
	}
}

package plan

import "sort"

const align = 64 // of every buffer, in bytes

func up(n int) int { return (n + align - 1) &^ (align - 1) }

// Layout gives every buffer its address, from base on: constants and tensors that persist first, then the arena, in
// which buffers that do not live at the same time share room. It returns where the arena starts and where it ends.
//
// The arena is filled largest buffer first, each at the lowest address that is free for as long as it lives
// (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020, greedy by size).
func (p *Plan) Layout(base int) (arena, end int) {
	at := up(base)
	put := func(b *Buffer) {
		if b.used {
			return
		}
		b.used = true
		b.Addr = at
		if b.NF4 {
			n := b.Node.Len()
			at = up(at + (n+1)/2)
			b.Scales = at
			at = up(at + 4*((n+63)/64))
			return
		}
		at = up(at + max(b.Bytes, 4)) // empty tensors have addresses of their own too
	}
	for _, b := range p.Consts {
		put(b)
	}
	for _, b := range p.Params {
		put(b)
	}
	for _, b := range p.Outputs {
		put(b)
	}
	arena = at
	for _, b := range p.Arena {
		b.first, b.last = -1, -1
	}
	for i, s := range p.Stages {
		touch := func(b *Buffer) {
			if b == nil || b.Fixed {
				return
			}
			if b.first < 0 {
				b.first = i
			}
			b.last = i
		}
		for _, b := range s.writes() {
			touch(b)
		}
		for _, b := range s.reads() {
			touch(b)
		}
	}
	order := make([]*Buffer, 0, len(p.Arena))
	for _, b := range p.Arena {
		if b.first >= 0 {
			order = append(order, b)
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return order[i].Bytes > order[j].Bytes })
	var placed []*Buffer // by address
	end = arena
	for _, b := range order {
		pos := arena
		for _, q := range placed {
			if q.last < b.first || q.first > b.last {
				continue
			}
			if q.Addr-pos >= up(b.Bytes) {
				break
			}
			pos = max(pos, q.Addr+up(q.Bytes))
		}
		b.Addr = pos
		i := sort.Search(len(placed), func(i int) bool { return placed[i].Addr > pos })
		placed = append(placed, nil)
		copy(placed[i+1:], placed[i:])
		placed[i] = b
		end = max(end, pos+up(b.Bytes))
	}
	return arena, end
}

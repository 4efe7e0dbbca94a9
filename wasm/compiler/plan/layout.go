package plan

import (
	"slices"
	"sort"
)

const align = 64 // of every buffer, in bytes

func up(n int) int { return (n + align - 1) &^ (align - 1) }

// Layout gives every buffer its address, from base on: constants and tensors that persist first, then the arena, in
// which buffers that do not live at the same time share room. It returns where the arena starts and where it ends.
// Stages that repeat find their buffers at addresses that follow from the round's number: see chain.
//
// The arena is filled largest buffer first, each at the lowest address that is free for as long as it lives
// (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020, greedy by size).
func (p *Plan) Layout(base int) (arena, end int) {
	l := newLinks()
	if !p.flat {
		p.Repeats = repeats(p.Stages, p.When, func(r Repeat) bool { return l.fit(p.Stages, r) })
	}
	chains := l.chains()
	arena = p.layoutFixed(up(base), chains)
	return arena, p.layoutArena(arena, chains)
}

// layoutFixed places what persists; a chain's buffers are side by side where its first one is met.
func (p *Plan) layoutFixed(at int, chains map[*Buffer]*chain) int {
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
	for _, list := range [][]*Buffer{p.Consts, p.Params, p.Outputs} {
		for _, b := range list {
			if c := chains[b]; c != nil {
				for _, b := range c.buffers {
					put(b)
				}
			}
			put(b)
		}
	}
	return at
}

// layoutArena places what is temporary, and returns where it ends.
func (p *Plan) layoutArena(arena int, chains map[*Buffer]*chain) (end int) {
	p.live()
	var items []*item
	done := map[*chain]bool{}
	for _, b := range p.Arena {
		c := chains[b]
		switch {
		case b.life.empty() || c != nil && done[c]:
		case c == nil:
			items = append(items, &item{chain: &chain{[]*Buffer{b}, 1}, bytes: up(b.Bytes), lives: []span{b.life}})
		default:
			done[c] = true
			items = append(items, newItem(c))
		}
	}
	sort.SliceStable(items, func(i, j int) bool { return items[i].bytes > items[j].bytes })
	var placed []*item // by address
	end = arena
	for _, it := range items {
		it.addr = arena
		for _, q := range placed {
			if !q.meets(it) {
				continue
			}
			if q.addr-it.addr >= it.bytes {
				break
			}
			it.addr = max(it.addr, q.addr+q.bytes)
		}
		at := sort.Search(len(placed), func(i int) bool { return placed[i].addr > it.addr })
		placed = slices.Insert(placed, at, it)
		each := it.bytes / it.chain.slots
		for i, b := range it.chain.buffers {
			b.Addr = it.addr + it.chain.at(i)*each
		}
		end = max(end, it.addr+it.bytes)
	}
	return end
}

// span is a time: from one stage to another, both with it.
type span struct{ first, last int }

func (s span) empty() bool { return s.last < s.first }

func (s span) meets(o span) bool { return s.first <= o.last && o.first <= s.last }

// live finds how long each buffer of the arena lives.
func (p *Plan) live() {
	for _, b := range p.Arena {
		b.life = span{len(p.Stages), -1}
	}
	for i, s := range p.Stages {
		at := func(b *Buffer) {
			if b != nil && !b.Fixed {
				b.life = span{min(b.life.first, i), max(b.life.last, i)}
			}
		}
		for _, r := range refsOf(s) {
			at(r.Buf)
		}
		at(p.When[s])
	}
}

// item is what the arena gives room to: a chain's buffers, or one buffer.
type item struct {
	chain       *chain
	addr, bytes int
	lives       []span // in order, apart from one another
}

// newItem lets the buffers of a chain share one or two places where they do not live at the same time.
func newItem(c *chain) *item {
	slot := up(c.buffers[0].Bytes)
	for c.slots = 1; c.slots <= 2; c.slots++ {
		if c.apart() {
			break
		}
	}
	if c.slots > 2 {
		c.slots = len(c.buffers)
	}
	it := &item{chain: c, bytes: slot * c.slots}
	for _, b := range c.buffers {
		if !b.life.empty() {
			it.lives = append(it.lives, b.life)
		}
	}
	sort.Slice(it.lives, func(i, j int) bool { return it.lives[i].first < it.lives[j].first })
	merged := it.lives[:0]
	for _, s := range it.lives {
		if n := len(merged); n > 0 && s.first <= merged[n-1].last+1 {
			merged[n-1].last = max(merged[n-1].last, s.last)
			continue
		}
		merged = append(merged, s)
	}
	it.lives = merged
	return it
}

// apart reports whether buffers of one slot never live at the same time.
func (c *chain) apart() bool {
	last := make(map[int][]span)
	for i, b := range c.buffers {
		if b.life.empty() {
			continue
		}
		s := c.at(i)
		if slices.ContainsFunc(last[s], b.life.meets) {
			return false
		}
		last[s] = append(last[s], b.life)
	}
	return true
}

// meets reports whether two items live at the same time.
func (it *item) meets(o *item) bool {
	for i, j := 0, 0; i < len(it.lives) && j < len(o.lives); {
		if it.lives[i].meets(o.lives[j]) {
			return true
		}
		if it.lives[i].last < o.lives[j].last {
			i++
		} else {
			j++
		}
	}
	return false
}

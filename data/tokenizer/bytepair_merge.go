//go:build !js || full

package tokenizer

import "container/heap"

// shortWord is the length in bytes up to which merging by looking at every pair
// each time is faster than keeping them in a heap.
const shortWord = 32

// appendWord appends the pieces of one word.
func (t *BytePair) appendWord(ids []int32, word string) []int32 {
	if id, ok := t.whole[word]; ok {
		return append(ids, id)
	}
	return mergeAll(t.merges, ids, word, func(ids []int32) []int32 { return t.symbols(ids, word) })
}

// symbols appends a word's first symbols.
func (t *BytePair) symbols(ids []int32, word string) []int32 {
	unknown := 0 // in a row that are not written yet
	flush := func() {
		for ; unknown > 0; unknown-- {
			ids = append(ids, t.unknown)
		}
	}
	none := func() {
		if t.unknown >= 0 && (unknown == 0 || !t.fuse) {
			unknown++
		}
	}
	if t.spells.bytes {
		for i := range len(word) {
			if id := t.bytes[word[i]]; id >= 0 {
				flush()
				ids = append(ids, id)
			} else {
				none()
			}
		}
		flush()
		return ids
	}
	for _, r := range word {
		if id, ok := t.ids[string(r)]; ok {
			flush()
			ids = append(ids, id)
		} else if more, ok := t.asBytes(ids, r); ok { // tokenizers, too, writes these before what waits
			ids = more
		} else {
			none()
		}
	}
	flush()
	return ids
}

// asBytes appends a character's bytes, where the vocabulary has all of them.
func (t *BytePair) asBytes(ids []int32, r rune) ([]int32, bool) {
	if !t.fallback {
		return ids, false
	}
	for _, b := range []byte(string(r)) {
		if t.bytes[b] < 0 {
			return ids, false
		}
	}
	for _, b := range []byte(string(r)) {
		ids = append(ids, t.bytes[b])
	}
	return ids, true
}

// mergeAll appends what is made of a word's first symbols, which first appends.
func mergeAll(merges map[[2]int32]merge, ids []int32, word string, first func([]int32) []int32) []int32 {
	if len(word) > shortWord {
		if symbols := first(nil); len(symbols) > 0 {
			return mergeLong(merges, ids, symbols)
		}
		return ids
	}
	return mergeShort(merges, first(ids), len(ids))
}

// mergeShort is the definition: the pair that was learned first is merged, its
// leftmost place first, until none is left. It takes time quadratic in the word.
func mergeShort(merges map[[2]int32]merge, ids []int32, start int) []int32 {
	for {
		best, at := merge{rank: 1 << 30}, -1
		for i := start; i+1 < len(ids); i++ {
			if m, ok := merges[[2]int32{ids[i], ids[i+1]}]; ok && m.rank < best.rank {
				best, at = m, i
			}
		}
		if at < 0 {
			return ids
		}
		ids[at] = best.id
		ids = append(ids[:at+1], ids[at+2:]...)
	}
}

// mergeLong gives the same ids in time n log n: a word of a hostile text may be as
// long as the text.
func mergeLong(merges map[[2]int32]merge, ids, first []int32) []int32 {
	s := make([]symbol, len(first))
	for i, id := range first {
		s[i] = symbol{id, int32(i - 1), int32(i + 1)}
	}
	s[len(s)-1].next = -1
	var queue pairs
	push := func(at int32) {
		if at < 0 || s[at].next < 0 {
			return
		}
		key := [2]int32{s[at].id, s[s[at].next].id}
		if m, ok := merges[key]; ok {
			queue = append(queue, neighbours{m, at, key})
		}
	}
	for i := range s {
		push(int32(i))
	}
	heap.Init(&queue)
	again := func(at int32) {
		n := len(queue)
		push(at)
		if len(queue) > n {
			heap.Fix(&queue, n)
		}
	}
	for len(queue) > 0 {
		p := heap.Pop(&queue).(neighbours)
		left := &s[p.at]
		if left.id != p.key[0] || left.next < 0 || s[left.next].id != p.key[1] {
			continue // one of the two has been merged with another since
		}
		right := &s[left.next]
		left.id, right.id = p.id, -1
		left.next = right.next
		if left.next >= 0 {
			s[left.next].before = p.at
		}
		again(left.before)
		again(p.at)
	}
	for i := int32(0); i >= 0; i = s[i].next {
		ids = append(ids, s[i].id)
	}
	return ids
}

// symbol is a piece of a word that is being merged, linked to its neighbours.
type symbol struct{ id, before, next int32 }

// neighbours are two symbols that can be merged; key are their ids when it was seen.
type neighbours struct {
	merge
	at  int32
	key [2]int32
}

// pairs is a heap: the pair learned first, and of those the leftmost, on top.
type pairs []neighbours

func (p pairs) Len() int { return len(p) }
func (p pairs) Less(i, j int) bool {
	if p[i].rank != p[j].rank {
		return p[i].rank < p[j].rank
	}
	return p[i].at < p[j].at
}
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *pairs) Push(x any)   { *p = append(*p, x.(neighbours)) }
func (p *pairs) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}

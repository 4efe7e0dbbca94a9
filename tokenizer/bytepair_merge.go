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
	if len(word) > shortWord {
		return t.appendLong(ids, word)
	}
	return t.appendShort(ids, word)
}

// appendShort is the definition: the pair that was learned first is merged, its
// leftmost place first, until none is left. It takes time quadratic in the word.
func (t *BytePair) appendShort(ids []int32, word string) []int32 {
	start := len(ids)
	for i := range len(word) {
		ids = append(ids, t.bytes[word[i]])
	}
	for {
		best, at := merge{rank: 1 << 30}, -1
		for i := start; i+1 < len(ids); i++ {
			if m, ok := t.merges[[2]int32{ids[i], ids[i+1]}]; ok && m.rank < best.rank {
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

// appendLong gives the same ids in time n log n: a word of a hostile text may be as
// long as the text.
func (t *BytePair) appendLong(ids []int32, word string) []int32 {
	s := make([]symbol, len(word))
	for i := range s {
		s[i] = symbol{t.bytes[word[i]], int32(i - 1), int32(i + 1)}
	}
	s[len(s)-1].next = -1
	var queue pairs
	push := func(at int32) {
		if at < 0 || s[at].next < 0 {
			return
		}
		key := [2]int32{s[at].id, s[s[at].next].id}
		if m, ok := t.merges[key]; ok {
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

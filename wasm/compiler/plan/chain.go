package plan

import (
	"maps"
	"slices"
)

// A chain is a list of buffers that the rounds of repeats use in turn, forwards or backwards. They are placed so that
// the address in a round follows from the round's number: evenly spaced, all in one place, or in two places by turns.
type chain struct {
	buffers []*Buffer
	slots   int // len(buffers), 1 or 2
}

// at is the slot of the i-th buffer.
func (c *chain) at(i int) int { return i % c.slots }

// links says which buffer follows which in its chain.
type links struct{ next, prev map[*Buffer]*Buffer }

func newLinks() *links {
	return &links{map[*Buffer]*Buffer{}, map[*Buffer]*Buffer{}}
}

// fit links the buffers of a repeat, or links nothing where they cannot be in chains.
func (l *links) fit(stages []Stage, r Repeat) bool {
	trial := &links{maps.Clone(l.next), maps.Clone(l.prev)}
	for k := range r.Count {
		series := make([][]Ref, len(refsOf(stages[r.First+k])))
		for round := range r.Rounds {
			for j, ref := range refsOf(stages[r.First+round*r.Count+k]) {
				series[j] = append(series[j], ref)
			}
		}
		for _, s := range series {
			if !even(s) || !trial.join(s) {
				return false
			}
		}
	}
	*l = *trial
	return true
}

// refsOf lists the operands and results of a stage, each at its place.
func refsOf(s Stage) (list []Ref) {
	each(s, func(r *Ref) { list = append(list, *r) })
	return list
}

// even reports whether offsets follow from the round's number: by as much in every two rounds.
func even(s []Ref) bool {
	for i := range s {
		if i >= 2 && s[i].Off-s[i-2].Off != s[2].Off-s[0].Off {
			return false
		}
	}
	return (s[2].Off-s[0].Off)%2 == 0
}

// join links buffers that follow one another. One buffer in all rounds needs no link.
func (l *links) join(refs []Ref) bool {
	s := make([]*Buffer, len(refs))
	for i, r := range refs {
		s[i] = r.Buf
	}
	if !slices.ContainsFunc(s, func(b *Buffer) bool { return b != s[0] }) {
		return true
	}
	seen := map[*Buffer]bool{}
	for _, b := range s {
		if seen[b] {
			return false
		}
		seen[b] = true
	}
	if l.agree(s) {
		l.add(s)
		return true
	}
	back := slices.Clone(s)
	slices.Reverse(back)
	if l.agree(back) {
		l.add(back)
		return true
	}
	return false
}

// agree reports whether links as they are leave each buffer free to be followed by the next.
func (l *links) agree(s []*Buffer) bool {
	for i, b := range s[1:] {
		if n := l.next[s[i]]; n != nil && n != b {
			return false
		}
		if p := l.prev[b]; p != nil && p != s[i] {
			return false
		}
	}
	return true
}

func (l *links) add(s []*Buffer) {
	for i, b := range s[1:] {
		l.next[s[i]], l.prev[b] = b, s[i]
	}
}

// chains returns the chain of each buffer that has one. A ring, which no order of its buffers serves, is left alone.
func (l *links) chains() map[*Buffer]*chain {
	of := map[*Buffer]*chain{}
	for b := range l.next {
		if l.prev[b] != nil {
			continue
		}
		c := &chain{}
		for ; b != nil; b = l.next[b] {
			c.buffers = append(c.buffers, b)
			of[b] = c
		}
		c.slots = len(c.buffers)
	}
	return of
}

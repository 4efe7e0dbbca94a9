package pattern

import (
	"fmt"
	"unicode/utf8"
)

// Pattern is an expression that was understood. It is immutable and safe for concurrent use.
type Pattern struct{ insts []inst }

type op uint8

const (
	opMatch  op = iota
	opSet       // one character of set
	opLoop      // min to max characters of set, as many as there are; atomic: and no fewer later
	opSplit     // goes on at x, and if that fails at y
	opJump      // goes on at x
	opAhead     // the instructions up to x match here (negate: they do not), and it goes on at x
	opBehind    // the same of what ends here and has y characters
	opAtomic    // the instructions up to x match, and are not tried again
	opAssert    // a place
)

type inst struct {
	op       op
	negate   bool
	atomic   bool
	assert   byte
	set      *set
	first    [2]uint64 // opSplit, where it is asked: what of ASCII x may begin with
	asked    bool
	x, y     int
	min, max int
}

func compile(root *node) (*Pattern, error) {
	c := &compiler{}
	c.node(root)
	c.emit(inst{op: opMatch})
	if c.over {
		return nil, fmt.Errorf("%w: more than %d instructions", ErrSyntax, maxInsts)
	}
	return &Pattern{c.insts}, nil
}

type compiler struct {
	insts []inst
	over  bool
}

func (c *compiler) emit(i inst) (at int) {
	if len(c.insts) >= maxInsts {
		c.over = true
		return 0
	}
	c.insts = append(c.insts, i)
	return len(c.insts) - 1
}

func (c *compiler) node(n *node) {
	if c.over {
		return
	}
	switch n.kind {
	case kindSet:
		c.emit(inst{op: opSet, set: n.set})
	case kindJoined:
		for _, k := range n.kids {
			c.node(k)
		}
	case kindChoice:
		var ends []int
		for i, k := range n.kids {
			if i == len(n.kids)-1 {
				c.node(k)
				break
			}
			first, some := k.first()
			split := c.emit(inst{op: opSplit, first: first, asked: some})
			c.node(k)
			ends = append(ends, c.emit(inst{op: opJump}))
			c.insts[split].x, c.insts[split].y = split+1, len(c.insts)
		}
		for _, at := range ends {
			c.insts[at].x = len(c.insts)
		}
	case kindRepeat:
		c.repeat(n)
	case kindAtomic:
		if k := n.kids[0]; k.kind == kindRepeat && !k.lazy && k.kids[0].kind == kindSet {
			c.emit(inst{op: opLoop, set: k.kids[0].set, min: k.min, max: k.max, atomic: true})
			return
		}
		c.inner(inst{op: opAtomic}, n.kids[0])
	case kindAhead:
		c.inner(inst{op: opAhead, negate: n.negate}, n.kids[0])
	case kindBehind:
		c.behind(n)
	case kindAssert:
		c.emit(inst{op: opAssert, assert: n.assert})
	}
}

// inner has instructions of its own, which end with a match.
func (c *compiler) inner(i inst, body *node) {
	at := c.emit(i)
	c.node(body)
	c.emit(inst{op: opMatch})
	c.insts[at].x = len(c.insts)
}

// behind looks for each alternative by its own length.
func (c *compiler) behind(n *node) {
	each := alternatives(n.kids[0])
	if n.negate { // none of them
		for _, k := range each {
			l, _ := k.length()
			c.inner(inst{op: opBehind, negate: true, y: l}, k)
		}
		return
	}
	any := &node{kind: kindChoice}
	for _, k := range each {
		any.kids = append(any.kids, &node{kind: kindBehind, kids: []*node{k}})
	}
	if len(each) > 1 {
		c.node(any)
		return
	}
	l, _ := each[0].length()
	c.inner(inst{op: opBehind, y: l}, each[0])
}

func (c *compiler) repeat(n *node) {
	body := n.kids[0]
	if body.kind == kindSet && !n.lazy {
		c.emit(inst{op: opLoop, set: body.set, min: n.min, max: n.max})
		return
	}
	for range n.min {
		c.node(body)
	}
	split := func() int { return c.emit(inst{op: opSplit}) }
	join := func(at, inside, outside int) {
		if n.lazy {
			inside, outside = outside, inside
		}
		c.insts[at].x, c.insts[at].y = inside, outside
	}
	if n.max < 0 {
		at := split()
		c.node(body)
		c.emit(inst{op: opJump, x: at})
		join(at, at+1, len(c.insts))
		return
	}
	var open []int
	for range n.max - n.min {
		if c.over {
			return
		}
		open = append(open, split())
		c.node(body)
	}
	for _, at := range open {
		join(at, at+1, len(c.insts))
	}
}

// choice is where matching goes on if what was tried fails. low is the least place that a loop may
// give back to; -1: it is not a loop.
type choice struct{ pc, at, low int }

// Next finds the first match that begins at from or behind it. It returns false if there is none, or
// if meter is spent. text is UTF-8.
func (p *Pattern) Next(text string, from int, meter *Meter) (start, end int, ok bool) {
	for at := from; at <= len(text); {
		meter.stack = meter.stack[:0]
		if end, ok := p.run(0, text, at, meter); ok {
			return at, end, true
		}
		if meter.Spent() || at == len(text) {
			break
		}
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
	return 0, 0, false
}

// run matches from an instruction on and leaves the stack as it finds it.
func (p *Pattern) run(pc int, text string, at int, m *Meter) (end int, ok bool) {
	base := len(m.stack)
	defer func() { m.stack = m.stack[:base] }()
	for {
		if m.Left--; m.Left < 0 {
			return 0, false
		}
		i := &p.insts[pc]
		fine := true
		switch i.op {
		case opMatch:
			return at, true
		case opSet:
			m.Left -= i.set.extra
			r, n := decode(text, at)
			if fine = n > 0 && i.set.has(r); fine {
				at += n
				pc++
			}
		case opLoop:
			at, fine = m.loop(i, pc, text, at)
			pc++
		case opSplit:
			if i.asked && (at == len(text) || text[at] < utf8.RuneSelf && i.first[text[at]/64]>>(text[at]%64)&1 == 0) {
				pc = i.y
				continue
			}
			m.push(choice{i.y, at, -1})
			pc = i.x
		case opJump:
			pc = i.x
		case opAhead:
			_, found := p.run(pc+1, text, at, m)
			fine = found != i.negate && !m.Spent()
			pc = i.x
		case opBehind:
			found := false
			if m.Left -= min(i.y, at); m.Left < 0 { // it walks back so many characters
				return 0, false
			}
			if from, enough := back(text, at, i.y); enough {
				_, found = p.run(pc+1, text, from, m)
			}
			fine = found != i.negate && !m.Spent()
			pc = i.x
		case opAtomic:
			at, fine = p.run(pc+1, text, at, m)
			pc = i.x
		case opAssert:
			fine = holds(i.assert, text, at)
			pc++
		}
		if fine {
			continue
		}
		if len(m.stack) == base {
			return 0, false
		}
		c := &m.stack[len(m.stack)-1]
		if pc = c.pc; c.low < 0 {
			at = c.at
			m.stack = m.stack[:len(m.stack)-1]
			continue
		}
		_, n := utf8.DecodeLastRuneInString(text[:c.at])
		c.at -= n
		if at = c.at; at <= c.low {
			m.stack = m.stack[:len(m.stack)-1]
		}
	}
}

// loop reads as many characters of a set as there are, and remembers how many it may give back.
func (m *Meter) loop(i *inst, pc int, text string, at int) (end int, ok bool) {
	low, count := at, 0
	most := m.Left / (1 + i.set.extra)
	for count != i.max {
		if count > most {
			m.Left = -1
			return 0, false
		}
		r, n := decode(text, at)
		if n == 0 || !i.set.has(r) {
			break
		}
		at += n
		if count++; count == i.min {
			low = at
		}
	}
	if m.Left -= count + (count+1)*i.set.extra; count < i.min {
		return 0, false
	}
	if at > low && !i.atomic {
		m.push(choice{pc + 1, at, low})
	}
	return at, true
}

// push remembers a choice. Beyond what the stack may hold the meter is spent.
func (m *Meter) push(c choice) {
	if len(m.stack) >= maxStack {
		m.Left = -1
		return
	}
	m.stack = append(m.stack, c)
}

func decode(text string, at int) (r rune, n int) {
	if at < len(text) && text[at] < utf8.RuneSelf {
		return rune(text[at]), 1
	}
	if at >= len(text) {
		return 0, 0
	}
	return utf8.DecodeRuneInString(text[at:])
}

// back is the place that lies so many characters before another.
func back(text string, at, count int) (from int, enough bool) {
	for range count {
		if at == 0 {
			return 0, false
		}
		_, n := utf8.DecodeLastRuneInString(text[:at])
		at -= n
	}
	return at, true
}

func holds(assert byte, text string, at int) bool {
	switch assert {
	case '^':
		return at == 0 || text[at-1] == '\n'
	case '$':
		return at == len(text) || text[at] == '\n'
	case 'A':
		return at == 0
	case 'z':
		return at == len(text)
	case 'Z':
		return at == len(text) || at == len(text)-1 && text[at] == '\n'
	}
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	behind, _ := utf8.DecodeRuneInString(text[at:])
	edge := (at > 0 && isWord(before)) != (at < len(text) && isWord(behind))
	return edge == (assert == 'b')
}

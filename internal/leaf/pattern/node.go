package pattern

type kind uint8

const (
	kindEmpty  kind = iota
	kindSet         // one character of a set
	kindJoined      // kids in a row
	kindChoice      // the first of kids that goes on to a match
	kindRepeat      // kids[0], min to max times; max -1: without an end
	kindAtomic      // kids[0], whose first match counts
	kindAhead       // kids[0] follows; negate: it does not
	kindBehind      // kids[0] precedes; negate: it does not
	kindAssert      // a place: see assert
)

// A node is a part of an expression.
type node struct {
	kind     kind
	set      *set
	kids     []*node
	min, max int
	lazy     bool
	negate   bool
	assert   byte // ^ $ A z Z b B
}

// length is how many characters a node takes, at least and at most; most is -1 without a bound.
func (n *node) length() (least, most int) {
	switch n.kind {
	case kindSet:
		return 1, 1
	case kindJoined:
		for _, k := range n.kids {
			l, m := k.length()
			if least += l; m < 0 || most < 0 {
				most = -1
			} else {
				most += m
			}
		}
	case kindChoice:
		for i, k := range n.kids {
			l, m := k.length()
			if i == 0 {
				least, most = l, m
				continue
			}
			if least = min(least, l); m < 0 || most < 0 {
				most = -1
			} else {
				most = max(most, m)
			}
		}
	case kindRepeat:
		l, m := n.kids[0].length()
		if least = l * n.min; m < 0 || n.max < 0 {
			return least, -1
		}
		return least, m * n.max
	case kindAtomic:
		return n.kids[0].length()
	}
	return least, most
}

// first are the characters of ASCII that a match of a node may begin with, as a bitmap, and whether it
// has a character at all.
func (n *node) first() (ascii [2]uint64, some bool) {
	add := func(more [2]uint64) {
		ascii[0] |= more[0]
		ascii[1] |= more[1]
	}
	switch n.kind {
	case kindSet:
		return n.set.ascii, true
	case kindJoined:
		for _, k := range n.kids {
			more, is := k.first()
			if add(more); is {
				return ascii, true
			}
		}
		return ascii, false
	case kindChoice:
		some = true
		for _, k := range n.kids {
			more, is := k.first()
			add(more)
			some = some && is
		}
		return ascii, some
	case kindRepeat:
		ascii, some = n.kids[0].first()
		return ascii, some && n.min > 0
	case kindAtomic:
		return n.kids[0].first()
	}
	return ascii, false
}

package plan

import (
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// conditions finds what a step needs not compute in every step: the nodes that only the chosen side of choices by one
// boolean wants, as a preconditioner that is computed anew every hundredth step is. It gives the boolean of each. Where no
// matrix product is among a boolean's nodes there is nothing to gain, and they are computed always: the choice is what the
// result depends on, in either case.
func conditions(g *ir.Graph, live []bool) map[*ir.Node]*ir.Node {
	users := make([][]*ir.Node, len(g.Nodes))
	for _, n := range g.Nodes {
		if live[n.ID] {
			for _, in := range n.In {
				users[in.ID] = append(users[in.ID], n)
			}
		}
	}
	under := map[*ir.Node]*ir.Node{}
	worth := map[*ir.Node]bool{}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		if len(users[n.ID]) == 0 || n.Op == ir.Param || n.Op == ir.Const || slices.Contains(g.Outputs, n) {
			continue
		}
		c := wantedBy(n, users[n.ID][0], under)
		if c == nil || slices.ContainsFunc(users[n.ID], func(u *ir.Node) bool { return wantedBy(n, u, under) != c }) {
			continue
		}
		under[n] = c
		worth[c] = worth[c] || n.Op == ir.Dot
	}
	for n, c := range under {
		if !worth[c] {
			delete(under, n)
		}
	}
	return under
}

// wantedBy is the boolean under which u wants n, or nil where it always does.
func wantedBy(n, u *ir.Node, under map[*ir.Node]*ir.Node) *ir.Node {
	if u.Op != ir.Select || u.In[1] != n || u.In[2] == n || u.In[0] == n {
		return under[u]
	}
	c := u.In[0]
	for c.Op == ir.Broadcast || c.Op == ir.Reshape {
		c = c.In[0]
	}
	if len(c.Dims) != 0 || c == n || !c.Op.IsElementwise() {
		return under[u]
	}
	return c
}

// condition notes which stages write nothing but what is wanted under one boolean, once that is computed. A boolean that is
// an output is outside the arena, where hosts look for none.
func (p *Plan) condition(under map[*ir.Node]*ir.Node, bufs map[*ir.Node]*Buffer) {
	p.When = map[Stage]*Buffer{}
	known := map[*Buffer]bool{}
	for _, s := range p.Stages {
		written := s.writes()
		when := bufs[under[written[0].Node]]
		for _, b := range written {
			if b.Fixed || bufs[under[b.Node]] != when {
				when = nil
			}
		}
		if when != nil && !when.Fixed && known[when] {
			p.When[s] = when
		}
		for _, b := range written {
			known[b] = true
		}
	}
}

package plan

import (
	"github.com/starling-fl/starling/wasm/compiler/ir"
)

const (
	maxLeaves = 10  // operands of one loop: its function has one parameter each, and the loader allows 16
	maxParams = 16  // of a function: one an operand or result of a loop
	maxCost   = 800 // of one expression, so that bodies stay small
)

// Weight is the cost of one float32 of an elementwise operation, in additions, by package cost's table.
func Weight(op ir.Op) int {
	if w, ok := weights[op]; ok {
		return w
	}
	return 1
}

var weights = map[ir.Op]int{
	ir.Div: 8, ir.Sqrt: 8, ir.Rsqrt: 16, ir.Rem: 93,
	ir.Exp: 36, ir.Tanh: 34, ir.Erf: 36, ir.Logistic: 46, ir.Log: 57,
	ir.Sin: 180, ir.Cos: 184, ir.Expm1: 228, ir.Log1p: 264, ir.Pow: 531,
}

// choice holds what is known about a node while deciding whether it is stored.
type choice struct {
	stored bool
	cost   int
	leaves map[*ir.Node]bool // stored nodes that the expression reads
}

// decide chooses the nodes that are in memory. force are nodes that must.
func decide(g *ir.Graph, live []bool, force map[*ir.Node]bool) map[*ir.Node]bool {
	consumers := make([][]*ir.Node, len(g.Nodes))
	for _, n := range g.Nodes {
		if live[n.ID] {
			for _, in := range n.In {
				consumers[in.ID] = append(consumers[in.ID], n)
			}
		}
	}
	// users follows consumers through views.
	var users func(n *ir.Node, out []*ir.Node) []*ir.Node
	users = func(n *ir.Node, out []*ir.Node) []*ir.Node {
		for _, c := range consumers[n.ID] {
			if c.Op.IsView() && !force[c] {
				out = users(c, out)
			} else {
				out = append(out, c)
			}
		}
		return out
	}
	info := make([]choice, len(g.Nodes))
	stored := map[*ir.Node]bool{}
	store := func(n *ir.Node) {
		stored[n] = true
		info[n.ID] = choice{stored: true, leaves: map[*ir.Node]bool{n: true}}
	}
	for _, n := range g.Nodes {
		if !live[n.ID] {
			continue
		}
		if force[n] || n.Op.IsHeavy() || n.Op == ir.Param || n.Op == ir.Const && n.Len() > 1 {
			if n.Op.IsElementwise() {
				limit(n, info, store)
			}
			store(n)
			continue
		}
		if n.Op.IsElementwise() {
			limit(n, info, store)
		}
		c := choice{leaves: map[*ir.Node]bool{}}
		for _, in := range n.In {
			c.cost += info[in.ID].cost
			for l := range info[in.ID].leaves {
				c.leaves[l] = true
			}
		}
		if n.Op.IsElementwise() {
			c.cost += Weight(n.Op)
		}
		info[n.ID] = c
		if !n.Op.IsElementwise() {
			continue
		}
		us := users(n, nil)
		big, stretched := 0, false
		for l := range c.leaves {
			if l.Len()*4 > n.Len() {
				big++
			}
		}
		for _, u := range us {
			if size := iteration(u); size >= 2*n.Len() {
				stretched = true
			}
		}
		switch {
		case len(us) > 1 && n.Len() == 1:
			if c.cost > 8 {
				store(n)
			}
		case len(us) > 1 && (c.cost > 3 || big > 1):
			store(n)
		case stretched && n.Len() > 1 && c.cost >= 4:
			store(n)
		case c.cost > maxCost:
			store(n)
		}
	}
	return stored
}

// iteration returns the number of points at which u evaluates its operands.
func iteration(u *ir.Node) int {
	if u.Op.IsReduce() {
		return u.In[0].Len()
	}
	return u.Len()
}

// limit stores operands of n until what remains reads at most maxLeaves tensors.
func limit(n *ir.Node, info []choice, store func(*ir.Node)) {
	for {
		all := map[*ir.Node]bool{}
		var widest *ir.Node
		for _, in := range n.In {
			for l := range info[in.ID].leaves {
				all[l] = true
			}
			base := in
			for base.Op.IsView() && !info[base.ID].stored {
				base = base.In[0]
			}
			if base.Op.IsElementwise() && !info[base.ID].stored &&
				(widest == nil || len(info[base.ID].leaves) > len(info[widest.ID].leaves)) {
				widest = base
			}
		}
		if len(all) <= maxLeaves || widest == nil {
			return
		}
		store(widest)
		for _, in := range n.In {
			refreshViews(in, info)
		}
	}
}

func refreshViews(n *ir.Node, info []choice) {
	if n.Op.IsView() && !info[n.ID].stored {
		refreshViews(n.In[0], info)
		info[n.ID] = choice{cost: info[n.In[0].ID].cost, leaves: info[n.In[0].ID].leaves}
	}
}

// liveNodes marks what the outputs depend on.
func liveNodes(g *ir.Graph) []bool {
	live := make([]bool, len(g.Nodes))
	for _, o := range g.Outputs {
		live[o.ID] = true
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		if live[i] {
			for _, in := range g.Nodes[i].In {
				live[in.ID] = true
			}
		}
	}
	return live
}

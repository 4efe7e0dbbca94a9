package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// Build plans a graph.
func Build(g *ir.Graph, cfg Config) (*Plan, error) {
	live := liveNodes(g)
	force := map[*ir.Node]bool{}
	var under map[*ir.Node]*ir.Node
	if !cfg.Flat {
		under = conditions(g, live)
	}
	for _, c := range under {
		force[c] = true // the host reads it
	}
	decode := map[*ir.Node]bool{}
	for range len(g.Nodes) + 1 {
		l := &lowering{g: g, cfg: cfg, live: live, force: force, decode: decode, under: under}
		p, err := l.run()
		var plain *decodeError
		if errors.As(err, &plain) && !decode[plain.node] {
			decode[plain.node] = true
			continue
		}
		var need *needError
		if errors.As(err, &need) {
			if force[need.node] {
				return nil, fmt.Errorf("plan: %v cannot be addressed though it is stored", need.node)
			}
			force[need.node] = true
			continue
		}
		return p, err
	}
	return nil, errors.New("plan: does not settle")
}

// needError asks for a node to be stored.
type needError struct{ node *ir.Node }

func (e *needError) Error() string { return fmt.Sprintf("%v must be stored", e.node) }

type lowering struct {
	g      *ir.Graph
	cfg    Config
	live   []bool
	force  map[*ir.Node]bool
	under  map[*ir.Node]*ir.Node
	decode map[*ir.Node]bool // NF4 parameters that are also wanted as plain numbers
	nf4    map[*ir.Node]*Buffer
	stored map[*ir.Node]bool
	bufs   map[*ir.Node]*Buffer
	plan   *Plan
	taken  map[*ir.Node]int // output that a node's buffer serves
}

func (l *lowering) run() (*Plan, error) {
	l.requireOperands()
	for _, o := range l.g.Outputs {
		if o.Op.IsElementwise() {
			l.force[o] = true
		}
	}
	l.stored = decide(l.g, l.live, l.force)
	l.plan = &Plan{flat: l.cfg.Flat}
	l.bufs, l.nf4 = map[*ir.Node]*Buffer{}, map[*ir.Node]*Buffer{}
	for i, p := range l.g.Params {
		b := &Buffer{Node: p, Bytes: p.Bytes(), Fixed: true}
		if l.cfg.NF4 != nil && l.cfg.NF4[i] {
			b.NF4 = true
			l.nf4[p] = b
		}
		l.bufs[p] = b
		l.plan.Params = append(l.plan.Params, b)
		if l.decode[p] {
			d := &Buffer{Node: p, Bytes: p.Bytes()}
			l.bufs[p] = d
			l.plan.Arena = append(l.plan.Arena, d)
			l.plan.Stages = append(l.plan.Stages, &Direct{Node: p, In: []Ref{{b, 0}}, Out: Ref{d, 0}})
		}
	}
	l.claimOutputs()
	var pending []*ir.Node // elementwise roots of the group being gathered
	flush := func() error {
		for len(pending) > 0 {
			n, err := l.loopOf(pending)
			if err != nil {
				return err
			}
			pending = pending[n:]
		}
		return nil
	}
	for _, n := range l.g.Nodes {
		if !l.live[n.ID] || !l.stored[n] || n.Op == ir.Param {
			continue
		}
		if err := l.cfg.stop(); err != nil {
			return nil, err
		}
		if n.Op == ir.Const {
			b := &Buffer{Node: n, Bytes: n.Bytes(), Fixed: true, Const: n.Data}
			l.bufs[n] = b
			l.plan.Consts = append(l.plan.Consts, b)
			continue
		}
		if l.standing(n) {
			if l.dependsOn(n, pending) {
				if err := flush(); err != nil {
					return nil, err
				}
			}
			l.bufs[n] = l.bufs[n.In[0]]
			continue
		}
		l.buffer(n)
		if n.Op.IsElementwise() {
			pending = append(pending, n)
			continue
		}
		if l.dependsOn(n, pending) || slices.Contains(pending, l.under[n]) {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		if err := l.heavy(n); err != nil {
			return nil, err
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	if err := l.finishOutputs(); err != nil {
		return nil, err
	}
	l.plan.forget()
	if !l.cfg.Flat {
		l.plan.reuse(l.under)
	}
	l.plan.condition(l.under, l.bufs)
	return l.plan, nil
}

// standing tells whether a node is a barrier of what is in memory anyway, as numbers and in every step that wants it.
func (l *lowering) standing(n *ir.Node) bool {
	if n.Op != ir.Barrier || l.bufs[n] != nil {
		return false
	}
	x := n.In[0]
	return l.stored[x] && l.bufs[x] != nil && !l.bufs[x].NF4 && l.under[x] == l.under[n]
}

// dependsOn tells whether n reads, directly or through what is not stored, one of the nodes.
func (l *lowering) dependsOn(n *ir.Node, nodes []*ir.Node) bool {
	if len(nodes) == 0 {
		return false
	}
	for _, in := range n.In {
		if slices.Contains(nodes, in) {
			return true
		}
		if !l.stored[in] && l.dependsOn(in, nodes) {
			return true
		}
	}
	return false
}

func (l *lowering) isBecoming(i int) bool { return l.cfg.Becomes != nil && l.cfg.Becomes[i] >= 0 }

// buffer makes the buffer of a stored node, unless an output gave it one.
func (l *lowering) buffer(n *ir.Node) *Buffer {
	if b := l.bufs[n]; b != nil {
		return b
	}
	b := &Buffer{Node: n, Bytes: n.Bytes()}
	l.bufs[n] = b
	l.plan.Arena = append(l.plan.Arena, b)
	return b
}

// requireOperands forces what heavy operations read to be in memory.
func (l *lowering) requireOperands() {
	for _, n := range l.g.Nodes {
		if !l.live[n.ID] || !n.Op.IsHeavy() {
			continue
		}
		switch n.Op {
		case ir.Barrier:
			if x := n.In[0]; x.Op.IsElementwise() { // which then needs no copy
				l.force[x] = true
			}
		case ir.Dot:
			for _, in := range n.In {
				base := in
				for base.Op.IsView() && !l.force[base] {
					base = base.In[0]
				}
				switch {
				case base.Op.IsElementwise():
					l.force[base] = true
				case base.Op == ir.Iota || base.IsScalarConst():
					l.force[in] = true
				}
			}
		case ir.Gather, ir.ScatterSum, ir.ScatterMax, ir.ScatterMin, ir.ArgMax, ir.ArgMin, ir.DynamicSlice,
			ir.DynamicUpdate, ir.Window:
			for _, in := range n.In {
				for in.Op == ir.Reshape && !l.force[in] {
					in = in.In[0]
				}
				if in.Op != ir.Param && !in.Op.IsHeavy() {
					l.force[in] = true
				}
			}
		}
	}
}

// claimOutputs gives outputs their buffers: the computed node's own where it is free, else a copy at the end.
func (l *lowering) claimOutputs() {
	l.taken = map[*ir.Node]int{}
	for i, o := range l.g.Outputs {
		var b *Buffer
		if l.isBecoming(i) {
			b = l.plan.Params[l.cfg.Becomes[i]]
		} else {
			b = &Buffer{Node: o, Bytes: o.Bytes(), Fixed: true}
			// The node may be computed in place of the output.
			if _, again := l.taken[o]; !again && (o.Op.IsElementwise() || o.Op.IsHeavy()) {
				l.taken[o] = i
				l.bufs[o] = b
			}
		}
		l.plan.Outputs = append(l.plan.Outputs, b)
	}
}

// finishOutputs copies what was not computed in place. State is replaced last, once everything has read it.
func (l *lowering) finishOutputs() error {
	for i, o := range l.g.Outputs {
		if j, ok := l.taken[o]; ok && i == j || l.isBecoming(i) {
			continue
		}
		if err := l.copyTo(o, l.plan.Outputs[i]); err != nil {
			return err
		}
	}
	for i, o := range l.g.Outputs {
		if err := l.cfg.stop(); err != nil {
			return err
		}
		dst := l.plan.Outputs[i]
		if !l.isBecoming(i) || o == dst.Node || l.inPlace(o, dst) {
			continue
		}
		if o.Op == ir.Param {
			return fmt.Errorf("plan: state %q becomes another parameter, %q", dst.Node.Name, o.Name)
		}
		// What is not stored yet may read a state that was replaced meanwhile.
		if !l.stored[o] && readsParam(o) {
			return &needError{o}
		}
		if err := l.copyTo(o, dst); err != nil {
			return err
		}
	}
	return nil
}

// readsParam tells whether a value that is not stored is computed from a parameter.
func readsParam(n *ir.Node) bool {
	return n.Op == ir.Param || slices.ContainsFunc(n.In, readsParam)
}

// inPlace lets the loop that computes o write straight into the state's buffer, or a scatter add to it, where nothing
// else reads the old value at the same time or later.
func (l *lowering) inPlace(o *ir.Node, dst *Buffer) bool {
	src := l.bufs[o]
	if src == nil || src.Fixed {
		return false
	}
	at := -1
	for i, s := range l.plan.Stages {
		if slices.Contains(s.writes(), src) {
			if at >= 0 {
				return false
			}
			at = i
		}
	}
	if at < 0 {
		return false
	}
	if !within(l.plan.Stages[at], src, dst) {
		return false
	}
	for _, s := range l.plan.Stages[at+1:] {
		if slices.Contains(s.reads(), dst) || slices.Contains(s.writes(), dst) {
			return false
		}
	}
	// From here on the new value is in dst.
	for _, s := range l.plan.Stages {
		replace(s, src, dst)
	}
	l.plan.Arena = slices.DeleteFunc(l.plan.Arena, func(b *Buffer) bool { return b == src })
	l.bufs[o] = dst
	return true
}

// within tells whether a stage that writes src may do so where dst stands, of which it reads no element that it wrote before.
func within(s Stage, src, dst *Buffer) bool {
	switch s := s.(type) {
	case *Loop:
		i := slices.IndexFunc(s.Outs, func(o Out) bool { return o.Buf == src })
		return s.Reduce == ir.Invalid && !slices.ContainsFunc(s.Leaves, func(leaf Leaf) bool {
			return leaf.Buf == dst && (leaf.Off != s.Outs[i].Off || !slices.Equal(leaf.Strides, s.Outs[i].Strides))
		})
	case *Direct:
		scatters := s.Node.Op == ir.ScatterSum || s.Node.Op == ir.ScatterMax || s.Node.Op == ir.ScatterMin
		return scatters && s.In[0].Buf == dst && s.In[1].Buf != dst && s.In[2].Buf != dst
	}
	return false
}

func replace(s Stage, from, to *Buffer) {
	each(s, func(r *Ref) {
		if r.Buf == from {
			r.Buf = to
		}
	})
}

// each calls f with every operand and result of a stage.
func each(s Stage, f func(r *Ref)) {
	switch s := s.(type) {
	case *Loop:
		for i := range s.Leaves {
			f(&s.Leaves[i].Ref)
		}
		for i := range s.Outs {
			f(&s.Outs[i].Ref)
		}
	case *Dot:
		f(&s.A)
		f(&s.B)
		f(&s.C)
	case *Direct:
		for i := range s.In {
			f(&s.In[i])
		}
		f(&s.Out)
	}
}

// heavy plans one operation that is not elementwise.
func (l *lowering) heavy(n *ir.Node) error {
	switch {
	case n.Op == ir.Dot:
		return l.dot(n)
	case n.Op.IsReduce():
		return l.reduce(n)
	case n.Op == ir.Pad:
		return l.pad(n)
	case n.Op == ir.Concat:
		return l.concat(n)
	case n.Op == ir.Barrier:
		return l.copyTo(n.In[0], l.bufs[n])
	case n.Op.IsView(), n.Op == ir.Iota:
		return l.copyInto(n, Ref{l.bufs[n], 0}, ir.Strides(n.Dims))
	}
	d := &Direct{Node: n, Out: Ref{l.bufs[n], 0}}
	for _, in := range n.In {
		for in.Op == ir.Reshape && !l.stored[in] {
			in = in.In[0]
		}
		b := l.bufs[in]
		if q := l.nf4[in]; q != nil && n.Op == ir.Gather {
			b = q
		}
		if b == nil {
			return &needError{in}
		}
		if b.NF4 && n.Op != ir.Gather {
			return &decodeError{in}
		}
		d.In = append(d.In, Ref{b, 0})
	}
	l.plan.Stages = append(l.plan.Stages, d)
	return nil
}

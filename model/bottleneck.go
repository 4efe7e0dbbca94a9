package model

import "cmp"

// maxBlocks bounds Method.Blocks.
const maxBlocks = 64

// methods are those without ranks; MethodNames has lora before them.
var methods = []MethodKind{MethodHead, MethodBitFit, MethodFull, MethodAdapter, MethodCompacter}

// MethodNames lists the names of the known methods.
func MethodNames() []string {
	names := []string{string(MethodLoRA)}
	for _, m := range methods {
		names = append(names, string(m))
	}
	return names
}

// bottlenecks says whether the method adds modules to the base.
func (m Method) bottlenecks() bool { return m.Kind == MethodAdapter || m.Kind == MethodCompacter }

// BlockCount is Compacter's n.
func (m Method) BlockCount() int { return cmp.Or(m.Blocks, 8) }

// Width is the columns of a bottleneck: a 16th of the base's for Adapter, a 32nd for
// Compacter, as published, unless the method says otherwise.
func (m Method) Width(c Config) int {
	if m.Kind == MethodAdapter {
		return cmp.Or(m.Bottleneck, max(1, c.HiddenSize/16))
	}
	n := m.BlockCount()
	return cmp.Or(m.Bottleneck, max(1, c.HiddenSize/32/n)*n)
}

// Names of a bottleneck's parts, behind the name of the module that it follows.
const (
	AdapterDown = ".adapter.down" // D and b
	AdapterUp   = ".adapter.up"   // U and c
	KroneckerA  = "adapter.kronecker"

	FactorLeft  = ".left"  // Compacter: s_i of each product, [n, out/n]
	FactorRight = ".right" // t_i, [n, in/n]
)

// bottleneckEntries lists, for each layer l and its modules m, attention's output and
// the feed-forward's,
//
//	Adapter:    m.adapter.down.{weight [r, h], bias [r]}, m.adapter.up.{weight [h, r], bias [h]}
//	Compacter:  m.adapter.down.{left [n, r/n], right [n, h/n], bias [r]},
//	            m.adapter.up.{left [n, h/n], right [n, r/n], bias [h]}
//
// Compacter's begin with adapter.kronecker [n, n, n], which all of them share: W is
// the sum over i of A_i (x) (s_i t_i^T). U is zero at the start.
func (m Method) bottleneckEntries(c Config) []Entry {
	if !m.bottlenecks() {
		return nil
	}
	h, r, n := c.HiddenSize, m.Width(c), m.BlockCount()
	var all []Entry
	add := func(name string, start Start, shape ...int) {
		all = append(all, Entry{name, KindAdapter, shape, start})
	}
	if m.Kind == MethodCompacter {
		add(KroneckerA, StartUniform, n, n, n)
	}
	for i := range c.NumHiddenLayers {
		l := c.Layer(i)
		for _, module := range []string{l.AttentionOutput, l.Output} {
			down, up := module+AdapterDown, module+AdapterUp
			if m.Kind == MethodAdapter {
				add(down+".weight", StartUniform, r, h)
				add(down+".bias", StartZero, r)
				add(up+".weight", StartZero, h, r)
				add(up+".bias", StartZero, h)
				continue
			}
			add(down+FactorLeft, StartUniform, n, r/n)
			add(down+FactorRight, StartUniform, n, h/n)
			add(down+".bias", StartZero, r)
			add(up+FactorLeft, StartZero, n, h/n)
			add(up+FactorRight, StartUniform, n, r/n)
			add(up+".bias", StartZero, h)
		}
	}
	return all
}

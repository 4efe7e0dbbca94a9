package model

import "cmp"

// maxBlocks bounds Method.Blocks.
const maxBlocks = 64

// BlockCount is Compacter's n.
func (m Method) BlockCount() int { return cmp.Or(m.Blocks, 8) }

// Width is the columns of a bottleneck, 0 of a method without.
func (m Method) Width(c Config) int {
	if f := m.of().width; f != nil {
		return f(m, c)
	}
	return 0
}

// adapterWidth is a 16th of the base's width, compacterWidth a 32nd, as published, unless the
// method says otherwise.
func adapterWidth(m Method, c Config) int { return cmp.Or(m.Bottleneck, max(1, c.HiddenSize/16)) }

func compacterWidth(m Method, c Config) int {
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
	if !m.Bottlenecks() {
		return nil
	}
	h, r, n := c.HiddenSize, m.Width(c), m.BlockCount()
	var all []Entry
	add := func(name string, start Start, shape ...int) {
		all = append(all, Entry{name, KindAdapter, shape, start})
	}
	if m.of().blocks {
		add(KroneckerA, StartUniform, n, n, n)
	}
	for i := range c.NumHiddenLayers {
		l := c.Layer(i)
		for _, module := range []string{l.AttentionOutput, l.Output} {
			down, up := module+AdapterDown, module+AdapterUp
			if !m.of().blocks {
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

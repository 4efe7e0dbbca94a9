package plan

import (
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// dot plans a matrix product: transpositions, reshapes and slices of the operands become strides of its loops.
func (l *lowering) dot(n *ir.Node) error {
	a, b := n.In[0], n.In[1]
	x := n.Attr.Dot
	free := func(t *ir.Node, u, v []int) (axes []int) {
		for i := range t.Dims {
			if !slices.Contains(u, i) && !slices.Contains(v, i) {
				axes = append(axes, i)
			}
		}
		return axes
	}
	m, nn := free(a, x.LhsContract, x.LhsBatch), free(b, x.RhsContract, x.RhsBatch)
	// The domain's logical axes: batch, rows, columns, contracted.
	var dims []int
	aAt, bAt := make([]int, len(a.Dims)), make([]int, len(b.Dims))
	for i := range x.LhsBatch {
		aAt[x.LhsBatch[i]], bAt[x.RhsBatch[i]] = len(dims), len(dims)
		dims = append(dims, a.Dims[x.LhsBatch[i]])
	}
	for _, i := range m {
		aAt[i] = len(dims)
		dims = append(dims, a.Dims[i])
	}
	for _, i := range nn {
		bAt[i] = len(dims)
		dims = append(dims, b.Dims[i])
	}
	nout := len(dims)
	for i := range x.LhsContract {
		aAt[x.LhsContract[i]], bAt[x.RhsContract[i]] = len(dims), len(dims)
		dims = append(dims, a.Dims[x.LhsContract[i]])
	}
	if ir.Len(dims) == 0 && n.Len() > 0 { // a sum of no terms
		return l.fill(n, 0)
	}
	d := newDomain(dims)
	dot := &Dot{}
	err := overSplits(d, func() error {
		idx := identity(d)
		pick := func(at []int) []affine {
			r := make([]affine, len(at))
			for i, k := range at {
				r[i] = idx[k]
			}
			return r
		}
		ra, sa, err := l.address(a, pick(aAt), d, false)
		if err != nil {
			return err
		}
		rb, sb, err := l.address(b, pick(bAt), d, true)
		if err != nil {
			return err
		}
		sc := linear(idx[:nout], n.Dims, len(sa)).m
		dot.A, dot.B, dot.C = ra, rb, Ref{l.bufs[n], 0}
		dot.Batch, dot.M, dot.N, dot.K = nil, nil, nil, nil
		loop := 0
		for i, fs := range d.factors {
			for _, size := range fs {
				ax := Axis{size, sa[loop], sb[loop], sc[loop]}
				loop++
				if size == 1 {
					continue
				}
				switch {
				case i < len(x.LhsBatch):
					dot.Batch = append(dot.Batch, ax)
				case i < len(x.LhsBatch)+len(m):
					dot.M = append(dot.M, ax)
				case i < nout:
					dot.N = append(dot.N, ax)
				default:
					dot.K = append(dot.K, ax)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, g := range []*[]Axis{&dot.Batch, &dot.M, &dot.N, &dot.K} {
		*g = mergeAxes(*g)
	}
	if n.Len() == 0 {
		return nil
	}
	l.plan.Stages = append(l.plan.Stages, dot)
	return nil
}

// address follows views of n down to memory; the strides are in elements, one a loop of the domain. 4-bit tensors are
// read as they are where nf4 allows it.
func (l *lowering) address(n *ir.Node, idx []affine, d *domain, nf4 bool) (Ref, []int, error) {
	sizes := d.sizes()
	at := func(x *ir.Node, lin affine) (Ref, []int, error) {
		b := l.bufs[x]
		if q := l.nf4[x]; q != nil && nf4 {
			b = q
		}
		if b.NF4 && !nf4 {
			return Ref{}, nil, &decodeError{x}
		}
		return Ref{b, lin.c * x.DType.Size()}, lin.m, nil
	}
	for {
		if l.stored[n] {
			return at(n, linear(idx, n.Dims, len(sizes)))
		}
		if !n.Op.IsView() {
			return Ref{}, nil, &needError{n}
		}
		if n.Op != ir.Reshape {
			idx = through(n, idx, len(sizes))
			n = n.In[0]
			continue
		}
		x := n.In[0]
		lin := linear(idx, n.Dims, len(sizes))
		if l.stored[x] {
			return at(x, lin)
		}
		in, ok, err := delinear(lin, sizes, x.Dims)
		if err != nil {
			return Ref{}, nil, err
		}
		if !ok {
			return Ref{}, nil, &needError{x}
		}
		idx, n = in, x
	}
}

func mergeAxes(axes []Axis) []Axis {
	var out []Axis
	for _, a := range axes {
		if k := len(out) - 1; k >= 0 {
			p := out[k]
			if p.A == a.A*a.Size && p.B == a.B*a.Size && p.C == a.C*a.Size {
				a.Size *= p.Size
				out[k] = a
				continue
			}
		}
		out = append(out, a)
	}
	return out
}

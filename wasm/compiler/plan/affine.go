package plan

import "fmt"

// affine is an index that is affine in the loop counters of a domain: c + sum of m[j] * counter j.
type affine struct {
	c int
	m []int
}

func (a affine) scaled(by int) affine {
	r := affine{a.c * by, make([]int, len(a.m))}
	for j, m := range a.m {
		r.m[j] = m * by
	}
	return r
}

func (a affine) plus(b affine) affine {
	r := affine{a.c + b.c, make([]int, len(a.m))}
	for j := range a.m {
		r.m[j] = a.m[j] + b.m[j]
	}
	return r
}

func (a affine) key() string { return fmt.Sprint(a.c, a.m) }

// domain is the iteration space of a loop: logical axes, each cut into factors (outer first) as reshapes demand.
type domain struct {
	factors [][]int
}

func newDomain(dims []int) *domain {
	d := &domain{factors: make([][]int, len(dims))}
	for i, n := range dims {
		d.factors[i] = []int{n}
	}
	return d
}

// sizes returns the sizes of the loops, outer first.
func (d *domain) sizes() []int {
	var s []int
	for _, f := range d.factors {
		s = append(s, f...)
	}
	return s
}

// index returns the affine index of logical axis i.
func (d *domain) index(i int) affine {
	n, at := 0, 0
	for k, f := range d.factors {
		if k == i {
			at = n
		}
		n += len(f)
	}
	a := affine{m: make([]int, n)}
	stride := 1
	for j := len(d.factors[i]) - 1; j >= 0; j-- {
		a.m[at+j] = stride
		stride *= d.factors[i][j]
	}
	return a
}

// splitError asks for loop j of the domain to be cut into two, the inner one of size q.
type splitError struct{ loop, q int }

func (e *splitError) Error() string { return fmt.Sprintf("loop %d must be split at %d", e.loop, e.q) }

func (d *domain) split(e *splitError) {
	n := 0
	for i, f := range d.factors {
		if e.loop < n+len(f) {
			k := e.loop - n
			g := append([]int{}, f[:k]...)
			g = append(g, f[k]/e.q, e.q)
			d.factors[i] = append(g, f[k+1:]...)
			return
		}
		n += len(f)
	}
}

// linear returns the row-major position of idx in dims.
func linear(idx []affine, dims []int, loops int) affine {
	lin := affine{m: make([]int, loops)}
	s := 1
	for i := len(dims) - 1; i >= 0; i-- {
		lin = lin.plus(idx[i].scaled(s))
		s *= dims[i]
	}
	return lin
}

// delinear is the inverse of linear for the given dims. ok is false where the indices are not affine; err asks for a
// split of the domain after which they are.
func delinear(lin affine, sizes, dims []int) (idx []affine, ok bool, err error) {
	idx = make([]affine, len(dims))
	strides := make([]int, len(dims))
	s := 1
	for i := len(dims) - 1; i >= 0; i-- {
		idx[i].m = make([]int, len(sizes))
		strides[i] = s
		s *= dims[i]
	}
	if lin.c < 0 || lin.c >= max(s, 1) {
		return nil, false, nil
	}
	for i := range dims {
		idx[i].c = lin.c / strides[i] % dims[i]
	}
	for j, m := range lin.m {
		if m == 0 || sizes[j] == 1 {
			continue
		}
		if m < 0 {
			return nil, false, nil
		}
		d := 0
		for d < len(dims) && (dims[d] == 1 || strides[d] > m) {
			d++
		}
		if d == len(dims) || m%strides[d] != 0 {
			return nil, false, nil
		}
		upper := strides[d] * dims[d]
		if m*(sizes[j]-1) >= upper {
			if upper%m == 0 && sizes[j]%(upper/m) == 0 {
				return nil, false, &splitError{j, upper / m}
			}
			return nil, false, nil
		}
		idx[d].m[j] = m / strides[d]
	}
	for i := range dims {
		top := idx[i].c
		for j, m := range idx[i].m {
			top += m * (sizes[j] - 1)
		}
		if top >= dims[i] {
			return nil, false, nil
		}
	}
	return idx, true, nil
}

package kernel

import (
	"errors"
	"fmt"
	"math/bits"
)

// Axis is one loop of a product: its size, and by how many elements A, B and C move
// from one round to the next.
type Axis struct{ Size, A, B, C int }

// NF4 places a tensor of 4-bit codes in memory: codes two a byte, the first in the
// high half, and a float32 scale for every Block values. A value is level[code] *
// scale, rounded once (QLoRA, Dettmers et al. 2023, section 3).
type NF4 struct {
	Codes, Scales int // addresses; Scales is a multiple of 4
	Len           int // values
	Block         int // values that share a scale, a multiple of 16
}

// Product is C = A * B over nested loops, outer first: C[batch, row, column] is the
// sum of A[batch, row, term] * B[batch, term, column].
type Product struct {
	A, B, C int  // addresses of the first elements, multiples of 4; B of an NF4 tensor: index of its first value
	NF4     *NF4 // B's tensor; nil: float32
	Fused   bool // a term is multiplied and added with one rounding
	Batch   []Axis
	Rows    []Axis // their B is 0
	Cols    []Axis // their A is 0; the last one's C is 1
	Terms   []Axis // their C is 0
}

// Plan is a product that was checked against a memory's size.
type Plan struct {
	p       Product
	memory  int    // bytes
	outer   []Axis // batch, and columns that do not follow each other in C
	cols    []Axis // columns that do
	n       int    // of them
	rows    int
	terms   int
	entries int  // rounds of outer
	work    int  // multiply-adds
	thin    bool // see few.go
}

var errRange = errors.New("kernel: product reaches outside the memory")

// Prepare checks a product against a memory of the given bytes: no kernel reads or
// writes outside of it. The sizes must be 1 or more, with at most 2^28 rounds of
// each kind, steps between -2^28 and 2^28.
func Prepare(p Product, memory int) (*Plan, error) {
	const limit = 1 << 28
	pl := &Plan{p: p, memory: memory}
	counts := [4]int{1, 1, 1, 1}
	for g, axes := range [4][]Axis{p.Batch, p.Rows, p.Cols, p.Terms} {
		for _, a := range axes {
			if a.Size < 1 || a.Size > limit {
				return nil, fmt.Errorf("kernel: axis of %d rounds, want 1 to %d", a.Size, limit)
			}
			if counts[g] *= a.Size; counts[g] > limit {
				return nil, fmt.Errorf("kernel: more than %d rounds", limit)
			}
			for _, by := range [3]int{a.A, a.B, a.C} {
				if by < -limit || by > limit {
					return nil, fmt.Errorf("kernel: axis step %d, limit %d", by, limit)
				}
			}
		}
	}
	if n := len(p.Cols); n > 0 && p.Cols[n-1].C != 1 {
		return nil, errors.New("kernel: columns do not follow each other in C")
	}
	var lo, hi [3]int
	for _, axes := range [4][]Axis{p.Batch, p.Rows, p.Cols, p.Terms} {
		for _, a := range axes {
			for o, by := range [3]int{a.A, a.B, a.C} {
				d := by * (a.Size - 1) // below 2^56, and the sum of all below 2^59
				lo[o], hi[o] = lo[o]+min(d, 0), hi[o]+max(d, 0)
			}
		}
	}
	plain := func(o, at int) bool {
		return at >= 0 && at%4 == 0 && at <= memory && at+4*lo[o] >= 0 && at+4*hi[o]+4 <= memory
	}
	if bits.UintSize < 64 || !plain(0, p.A) || !plain(2, p.C) {
		return nil, errRange
	}
	switch q := p.NF4; {
	case q == nil:
		if !plain(1, p.B) {
			return nil, errRange
		}
	case q.Len < 1 || q.Len > limit || q.Block < 16 || q.Block%16 != 0 || q.Block > limit || q.Scales%4 != 0 ||
		q.Codes < 0 || q.Codes > memory-(q.Len+1)/2 || q.Scales < 0 || q.Scales > memory-4*((q.Len+q.Block-1)/q.Block) ||
		p.B < 0 || p.B >= q.Len || p.B+lo[1] < 0 || p.B+hi[1] >= q.Len:
		return nil, errRange
	}
	pl.split()
	pl.rows, pl.terms = counts[1], counts[3]
	pl.n, pl.entries = rounds(pl.cols), rounds(pl.outer)
	work := float64(counts[0]) * float64(counts[1]) * float64(counts[2]) * float64(counts[3])
	if work > 1<<60 {
		return nil, fmt.Errorf("kernel: %g multiply-adds, limit 2^60", work)
	}
	pl.work = int(work)
	pl.thin = pl.isThin()
	return pl, nil
}

// split parts the columns that follow each other in C from those that do not, which
// are one more outer loop.
func (pl *Plan) split() {
	at := len(pl.p.Cols)
	for next := 1; at > 0 && pl.p.Cols[at-1].C == next; at-- {
		next *= pl.p.Cols[at-1].Size
	}
	pl.cols = pl.p.Cols[at:]
	pl.outer = append(append([]Axis{}, pl.p.Batch...), pl.p.Cols[:at]...)
}

func rounds(axes []Axis) int {
	n := 1
	for _, a := range axes {
		n *= a.Size
	}
	return n
}

// locate fills dst with where rounds from, from+1, ... of nested axes stand.
func locate(dst []int, axes []Axis, from int, step func(Axis) int) {
	if len(axes) == 0 {
		clear(dst)
		return
	}
	last := axes[len(axes)-1]
	by := step(last)
	for len(dst) > 0 {
		i := from % last.Size
		base := i * by
		rest := from / last.Size
		for j := len(axes) - 2; j >= 0; j-- {
			base += rest % axes[j].Size * step(axes[j])
			rest /= axes[j].Size
		}
		n := min(len(dst), last.Size-i)
		for j := range n {
			dst[j] = base
			base += by
		}
		dst, from = dst[n:], from+n
	}
}

func stepA(a Axis) int { return a.A }
func stepB(a Axis) int { return a.B }
func stepC(a Axis) int { return a.C }

// run returns how many of the first positions are equally far apart, and how far.
func run(at []int) (n, by int) {
	if len(at) < 2 {
		return len(at), 0
	}
	by = at[1] - at[0]
	for n = 2; n < len(at) && at[n]-at[n-1] == by; n++ {
	}
	return n, by
}

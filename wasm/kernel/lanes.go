package kernel

import "unsafe"

// group is the number of lanes that kernels work on at least: one register of 512 bits, two of 256.
const group = 16

// laneWords are lanes as the assembly is declared to take them.
type laneWords = [13]uintptr

// lanes are the operands of one operation over rows of some groups of values. The assembly knows the fields' places
// (TestLanesLayout).
type lanes struct {
	at     [4]unsafe.Pointer // the result, which may be an operand's memory, and up to three operands
	step   [3]uintptr        // bytes from one group of an operand to the next: 64, or 0 where all are one group
	groups uintptr           // of a row, 1 or more
	rows   uintptr           // 1 or more
	jump   [4]uintptr        // bytes from the end of a row to the next one, of the result and the operands
}

// laneKernels is what loops need of one kind of vector unit.
type laneKernels struct {
	ops [opPair + pairs]func(*laneWords) // from Neg on
	// spread writes each of some values cols times, cols 16 or more. It may write up to 15 lanes more behind all.
	spread func(dst, src *uint32, rows, cols int)
	// rows reduces rows of whole groups to a value each, in the order of Row.
	rows [lastOp + 1]func(dst, src *uint32, rows, groups int)
	// columns combines accumulators with rows that are some bytes apart, one after the other.
	columns [lastOp + 1]func(acc, src *uint32, rows, by, groups int)
}

// opCopy is an operation of kernels alone.
const opCopy = lastOp + 1

// newPlainLanes makes the twin of all others, in plain Go.
func newPlainLanes(o *operations) *laneKernels {
	k := &laneKernels{spread: spreadPlain}
	for op, f := range o.unary {
		k.ops[op] = each(1, func(x *[3]uint32) uint32 { return f(x[0]) })
	}
	for op, f := range o.binary {
		k.ops[op] = each(2, func(x *[3]uint32) uint32 { return f(x[0], x[1]) })
		if neutral, ok := op.neutral(); ok {
			k.rows[op] = func(dst, src *uint32, rows, groups int) {
				n := group * groups
				for r, s := 0, words32(src, rows*n); r < rows; r++ {
					var p partials
					p.begin(neutral)
					p.add(f, s[r*n:][:n])
					words32(dst, rows)[r] = p.end(f, n)
				}
			}
			k.columns[op] = func(acc, src *uint32, rows, by, groups int) {
				a := words32(acc, group*groups)
				for r := range rows {
					for i, v := range words32((*uint32)(unsafe.Add(unsafe.Pointer(src), r*by)), len(a)) {
						a[i] = f(a[i], v)
					}
				}
			}
		}
	}
	k.ops[Select] = each(3, func(x *[3]uint32) uint32 { return x[0]&x[1] | ^x[0]&x[2] })
	for i := range Op(pairs) {
		first, second := o.binary[pairable[i/4]], o.binary[pairable[min(i%4, 2)]]
		k.ops[opPair+i] = each(3, func(x *[3]uint32) uint32 {
			if v := first(x[0], x[1]); i%4 < 3 {
				return second(v, x[2])
			} else {
				return second(x[2], v)
			}
		})
	}
	return k
}

// opPair and those behind it are two operations, the second of the first one's value: each of Add, Mul and Sub with
// each of Add, Mul, Sub and Sub from the third operand.
const (
	opPair = opCopy + 1
	pairs  = 12
)

var pairable = [...]Op{Add, Mul, Sub}

// each makes a kernel of what is done for every value. No address behind an operand is made.
func each(operands int, f func(x *[3]uint32) uint32) func(*laneWords) {
	return func(w *laneWords) {
		l := (*lanes)(unsafe.Pointer(w))
		var off [4]uintptr
		for range l.rows {
			for range l.groups {
				var in [4][]uint32
				for o := range 1 + operands {
					in[o] = words32((*uint32)(unsafe.Add(l.at[o], off[o])), group)
				}
				for i := range group {
					var x [3]uint32
					for o := range operands {
						x[o] = in[1+o][i]
					}
					in[0][i] = f(&x)
				}
				off[0] += 4 * group
				for o := range operands {
					off[1+o] += l.step[o]
				}
			}
			for o := range off {
				off[o] += l.jump[o]
			}
		}
	}
}

func words32(p *uint32, n int) []uint32 { return unsafe.Slice(p, n) }

func (l *lanes) words() *laneWords { return (*laneWords)(unsafe.Pointer(l)) }

func spreadPlain(dst, src *uint32, rows, cols int) {
	d := words32(dst, rows*cols)
	for r, v := range words32(src, rows) {
		for c := range cols {
			d[r*cols+c] = v
		}
	}
}

// partials are the partial results of a reduction in the order of Row.
type partials struct {
	p     [group]uint32
	extra uint32
}

func (p *partials) begin(neutral uint32) {
	for i := range p.p {
		p.p[i] = neutral
	}
	p.extra = neutral
}

// add combines the partial results with a row, or a piece of one: all but the last are whole groups.
func (p *partials) add(f func(x, y uint32) uint32, row []uint32) {
	for ; len(row) >= group; row = row[group:] {
		for i := range p.p {
			p.p[i] = f(p.p[i], row[i])
		}
	}
	for ; len(row) >= 4; row = row[4:] {
		for i := range 4 {
			p.p[i] = f(p.p[i], row[i])
		}
	}
	for _, v := range row {
		p.extra = f(p.extra, v)
	}
}

// end combines the partial results of rows of n values.
func (p *partials) end(f func(x, y uint32) uint32, n int) uint32 {
	q := [4]uint32(p.p[:4])
	if n >= group {
		for i := range q {
			q[i] = f(f(p.p[i], p.p[4+i]), f(p.p[8+i], p.p[12+i]))
		}
	}
	v := f(f(q[0], q[2]), f(q[1], q[3]))
	if n%4 != 0 {
		v = f(v, p.extra)
	}
	return v
}

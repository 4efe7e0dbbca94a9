package kernel

import "unsafe"

// group is the number of lanes that kernels work on at least: one register of 512 bits, two of 256.
const group = 16

// laneWords are lanes as the assembly is declared to take them.
type laneWords = [8]uintptr

// lanes are the operands of one operation over some groups of values. The assembly knows the fields' places
// (TestLanesLayout).
type lanes struct {
	at     [4]unsafe.Pointer // the result, which may be an operand's memory, and up to three operands
	step   [3]uintptr        // bytes from one group of an operand to the next: 64, or 0 where all are one group
	groups uintptr           // 1 or more
}

// laneKernels is what loops need of one kind of vector unit.
type laneKernels struct {
	ops [opCopy + 1]func(*laneWords) // from Neg on
	// spread writes each of some values cols times, cols 16 or more. It may write up to 15 lanes more behind all.
	spread func(dst, src *uint32, rows, cols int)
	// rows reduces rows of whole groups to a value each, in the order of Row.
	rows [lastOp + 1]func(dst, src *uint32, rows, groups int)
	// columns combines accumulators with rows that are some bytes apart, one after the other.
	columns [lastOp + 1]func(acc, src *uint32, rows, by, groups int)
}

// opCopy is an operation of kernels alone.
const opCopy = lastOp + 1

// plainLanes is the twin of all others in plain Go.
var plainLanes = newPlainLanes()

func newPlainLanes() *laneKernels {
	k := &laneKernels{spread: spreadPlain}
	for op, f := range unaries {
		k.ops[op] = func(w *laneWords) {
			l := (*lanes)(unsafe.Pointer(w))
			dst, a := l.result(), l.operand(0)
			for i := range dst {
				dst[i] = f(a[i&l.mask(0)])
			}
		}
	}
	for op, f := range binaries {
		k.ops[op] = func(w *laneWords) {
			l := (*lanes)(unsafe.Pointer(w))
			dst, a, b := l.result(), l.operand(0), l.operand(1)
			for i := range dst {
				dst[i] = f(a[i&l.mask(0)], b[i&l.mask(1)])
			}
		}
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
	k.ops[Select] = func(w *laneWords) {
		l := (*lanes)(unsafe.Pointer(w))
		dst, a, b, c := l.result(), l.operand(0), l.operand(1), l.operand(2)
		for i := range dst {
			mask := a[i&l.mask(0)]
			dst[i] = mask&b[i&l.mask(1)] | ^mask&c[i&l.mask(2)]
		}
	}
	return k
}

func words32(p *uint32, n int) []uint32 { return unsafe.Slice(p, n) }

func (l *lanes) words() *laneWords { return (*laneWords)(unsafe.Pointer(l)) }

func (l *lanes) result() []uint32 { return words32((*uint32)(l.at[0]), group*int(l.groups)) }

func (l *lanes) operand(o int) []uint32 {
	if l.step[o] == 0 {
		return words32((*uint32)(l.at[1+o]), group)
	}
	return words32((*uint32)(l.at[1+o]), group*int(l.groups))
}

// mask turns a lane's number into its index in operand o.
func (l *lanes) mask(o int) int {
	if l.step[o] == 0 {
		return group - 1
	}
	return -1
}

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

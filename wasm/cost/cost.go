// Package cost holds the cost of a program's instructions. The verifier adds it up from
// a module's bytes and bounds each segment by it; the compiler adds it up from what it
// writes, cuts segments by it and so knows what the verifier will say.
//
//	units := cost.Mul(trips, cost.Of(op))
package cost

import "math/bits"

// Units of cost: an instruction is 8, moving a value between locals, constants and the
// operand stack is 1, as compilers keep those in registers, and a division or square root
// takes about as long as eight others.
const (
	Move  = 1
	Plain = 8
	Slow  = 64
)

const (
	// MultiplyAdd is the least that a term of a matrix product costs: four of them take
	// one vector multiplication and one addition.
	MultiplyAdd = 2 * Plain / 4
	// Segment is the default limit of a segment's cost: some 10 ms.
	Segment = 1 << 30
	// Short is where a compiler ends a segment, so that a host looks up every 2.5 ms.
	Short = Segment / 4
	// Filled is the cost of each full 16 bytes of memory.copy and memory.fill.
	Filled = Plain
)

// Of returns the units charged for one execution of an instruction, without what it calls,
// copies or repeats. Two-byte opcodes are prefix<<8 | index.
func Of(op uint16) uint64 {
	switch op {
	case 0x02, 0x03, 0x05, 0x0b: // block, loop, else, end
		return 0
	case 0x01, 0x1a, // nop, drop
		0x20, 0x21, 0x22, // local.get, set, tee
		0x41, 0x42, 0x43, 0x44, 0xfd0c: // constants
		return Move
	case 0x6d, 0x6e, 0x6f, 0x70, 0x7f, 0x80, 0x81, 0x82, // i32, i64 div and rem
		0x91, 0x95, 0x9f, 0xa3, // f32, f64 sqrt and div
		0xfde3, 0xfde7, 0xfdef, 0xfdf3: // f32x4, f64x2 sqrt and div
		return Slow
	}
	return Plain
}

// Add and Mul saturate instead of wrapping: a bound must not become small.
func Add(a, b uint64) uint64 {
	if s, carry := bits.Add64(a, b, 0); carry == 0 {
		return s
	}
	return ^uint64(0)
}

// Mul is a times b, or the largest number where that does not fit.
func Mul(a, b uint64) uint64 {
	if hi, lo := bits.Mul64(a, b); hi == 0 {
		return lo
	}
	return ^uint64(0)
}

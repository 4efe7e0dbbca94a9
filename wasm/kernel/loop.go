package kernel

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Loop computes values at every point of nested loops and stores them, or reduces one over the loops from Kept on.
// A value is 32 bits: a float32, an int32, or, between operations, a bool, all ones or all zeros. Operations mean what
// WebAssembly's of 128 bits mean in each lane; elementary functions are the polynomials of wasm/compiler/codegen,
// rounded after every operation.
//
// A result's memory is apart from that of all other results and of all leaves, or is a leaf's own, walked alike;
// a reduction's is apart. Otherwise values are undefined; memory outside of what was declared is never touched.
type Loop struct {
	Sizes  []int // outer first, each 1 or more
	Kept   int   // Sizes[Kept:] are reduced over; len(Sizes) where nothing is
	Leaves []Operand
	Steps  []Step   // each computed from earlier ones
	Outs   []Result // one where Reduce is set
	Reduce Op       // None, Add, Mul, Max or Min
	Order  Order    // of a reduction
}

// Operand is memory that a loop walks.
type Operand struct {
	At      int   // address of the first element, a multiple of 4
	Strides []int // by how many elements of 4 bytes each loop moves; one a size
}

// Result is memory that a loop writes.
type Result struct {
	Operand     // strides of the loops that are reduced over are 0, the others not
	Value   int // the step that is stored, or reduced
}

// Step computes one value.
type Step struct {
	Op   Op
	In   [3]int // earlier steps
	Leaf int    // of Load
	Bits uint32 // of Const
}

// Order is the order in which a reduction combines values, which decides its bits. Each accumulator starts from the
// operation's neutral element: +0, 1, -Inf or +Inf.
type Order uint8

const (
	// Serial has one accumulator a result, and values come in the loops' order.
	Serial Order = iota
	// Columns is Serial, of results that stand side by side along loop Kept-1.
	Columns
	// Row reduces along the last loop, of 4 rounds or more, into partial results that live on in the reduced loops
	// around it: 16 of them where it has n >= 16 rounds, value i of the first n/16*16 going to partial i%16, else 4.
	// Of what is left whole groups of 4 go to partials 0 to 3, and single values to one more. At the end partials i,
	// i+4, i+8 and i+12 are combined as (0 and 4) and (8 and 12), those four as (0 and 2) and (1 and 3), and where n is
	// no multiple of 4 the one more is last.
	Row
)

// Op is an operation of a step.
type Op uint8

// The operations. Those whose names begin with I are of int32, the others of float32 unless said otherwise.
const (
	None Op = iota

	Load  // a leaf's element
	Const // Bits

	Neg
	Abs
	Sqrt
	Rsqrt // 1 / sqrt(x), rounded twice
	Exp
	Log
	Tanh
	Erf
	Logistic // 1 / (1 + exp(-x))
	Sign     // 1 or -1; zeros and NaN stay
	Floor
	Ceil
	Round    // to even
	IsFinite // a bool
	IsNaN    // a bool
	INeg
	IAbs
	Not        // of bits
	IntToFloat // to the nearest
	FloatToInt // towards zero; saturates, NaN is 0

	Add
	Sub
	Mul
	Div
	Max // NaN if either is, and +0 above -0
	Min
	Eq // bools
	Ne
	Lt
	Le
	Gt
	Ge
	IAdd
	ISub
	IMul
	IMax
	IMin
	IEq // bools
	INe
	ILt
	ILe
	IGt
	IGe
	And // of bits
	Or
	Xor

	Select // In[0] a bool: its bits choose between those of In[1] and In[2]

	lastOp = Select
)

// Operands returns how many earlier steps an operation takes.
func (o Op) Operands() int {
	switch {
	case o == Select:
		return 3
	case o >= Add:
		return 2
	case o >= Neg:
		return 1
	}
	return 0
}

// neutral returns the bits that a reduction starts from; false: nothing is reduced so.
func (o Op) neutral() (uint32, bool) {
	switch o {
	case Add:
		return 0, true
	case Mul:
		return math.Float32bits(1), true
	case Max:
		return math.Float32bits(float32(math.Inf(-1))), true
	case Min:
		return math.Float32bits(float32(math.Inf(1))), true
	}
	return 0, false
}

// Limits of a loop. With them no address leaves 64 bits.
const (
	maxLoops    = 16
	maxOperands = 256 // leaves and results
	maxSteps    = 4096
	maxPoints   = 1 << 40 // rounds of all loops
	maxRounds   = 1 << 28 // of one, and elements that a round moves by
)

// check holds a loop against a memory of the given bytes.
func (l *Loop) check(memory int) error {
	if bits.UintSize < 64 {
		return errors.New("kernel: loops need addresses of 64 bits")
	}
	if len(l.Sizes) > maxLoops || len(l.Leaves)+len(l.Outs) > maxOperands || len(l.Steps) > maxSteps {
		return fmt.Errorf("kernel: %d loops, %d operands, %d steps, limits %d, %d, %d", len(l.Sizes),
			len(l.Leaves)+len(l.Outs), len(l.Steps), maxLoops, maxOperands, maxSteps)
	}
	points := int64(1)
	for _, n := range l.Sizes {
		if n < 1 || n > maxRounds {
			return fmt.Errorf("kernel: loop of %d rounds, want 1 to %d", n, maxRounds)
		}
		if points > maxPoints/int64(n) {
			return errors.New("kernel: more than 2^40 points")
		}
		points *= int64(n)
	}
	if err := l.checkReduction(); err != nil {
		return err
	}
	for i := range l.Leaves {
		if err := l.Leaves[i].check(l.Sizes, memory); err != nil {
			return fmt.Errorf("kernel: leaf %d: %w", i, err)
		}
	}
	for i := range l.Steps {
		if err := l.checkStep(i); err != nil {
			return fmt.Errorf("kernel: step %d: %w", i, err)
		}
	}
	for i := range l.Outs {
		o := &l.Outs[i]
		if o.Value < 0 || o.Value >= len(l.Steps) {
			return fmt.Errorf("kernel: result %d of step %d, there are %d", i, o.Value, len(l.Steps))
		}
		if err := o.check(l.Sizes, memory); err != nil {
			return fmt.Errorf("kernel: result %d: %w", i, err)
		}
		for k, s := range o.Strides {
			if kept := k < l.Kept; kept == (s == 0) && (l.Sizes[k] > 1 || !kept) {
				return fmt.Errorf("kernel: result %d moves by %d in loop %d, of %d that are kept", i, s, k, l.Kept)
			}
		}
	}
	return nil
}

func (l *Loop) checkReduction() error {
	n := len(l.Sizes)
	if l.Reduce == None {
		if l.Kept != n || len(l.Outs) == 0 {
			return fmt.Errorf("kernel: %d of %d loops kept, %d results, and nothing reduced", l.Kept, n, len(l.Outs))
		}
		return nil
	}
	if _, ok := l.Reduce.neutral(); !ok {
		return fmt.Errorf("kernel: operation %d reduces nothing", l.Reduce)
	}
	if l.Kept < 0 || l.Kept >= n || len(l.Outs) != 1 {
		return fmt.Errorf("kernel: reduction with %d of %d loops kept and %d results", l.Kept, n, len(l.Outs))
	}
	switch {
	case l.Order > Row, l.Order == Columns && l.Kept == 0, l.Order == Row && l.Sizes[n-1] < 4:
		return fmt.Errorf("kernel: order %d of a reduction with %d of the loops %d kept", l.Order, l.Kept, l.Sizes)
	}
	return nil
}

// errOutside says that an operand reaches outside of the memory.
var errOutside = errors.New("reaches outside the memory")

// check holds an operand's first and last byte against the memory. Rounds and strides are below 2^28 each and the
// loops at most 16, so that sums stay below 2^61.
func (o *Operand) check(sizes []int, memory int) error {
	if len(o.Strides) != len(sizes) {
		return fmt.Errorf("%d strides for %d loops", len(o.Strides), len(sizes))
	}
	if o.At < 0 || o.At > memory || o.At%4 != 0 {
		return fmt.Errorf("address %d of a memory of %d bytes", o.At, memory)
	}
	lo, hi := 0, 0
	for i, s := range o.Strides {
		if s < -maxRounds || s > maxRounds {
			return fmt.Errorf("stride %d, limit %d either way", s, maxRounds)
		}
		d := s * (sizes[i] - 1)
		lo, hi = lo+min(d, 0), hi+max(d, 0)
	}
	if o.At+4*lo < 0 || o.At+4*hi+4 > memory {
		return errOutside
	}
	return nil
}

func (l *Loop) checkStep(i int) error {
	s := &l.Steps[i]
	if s.Op == None || s.Op > lastOp {
		return fmt.Errorf("unknown operation %d", s.Op)
	}
	for _, in := range s.In[:s.Op.Operands()] {
		if in < 0 || in >= i {
			return fmt.Errorf("operand %d is no earlier step", in)
		}
	}
	if s.Op == Load && (s.Leaf < 0 || s.Leaf >= len(l.Leaves)) {
		return fmt.Errorf("leaf %d of %d", s.Leaf, len(l.Leaves))
	}
	return nil
}

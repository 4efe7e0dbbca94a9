package wasm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/wasm/kernel"
)

// LoopStep computes a value of 32 bits at every point of a declared loop: a float32, an
// int32, or a truth, which is all ones or all zeros. Its text is the operation's name
// (docs/WASM.md lists them) and its arguments: numbers of earlier steps; of "load" the
// number of a leaf; of "const" eight hexadecimal digits.
type LoopStep struct {
	Op   string
	In   []int  // earlier steps
	Leaf int    // of "load"
	Bits uint32 // of "const"
}

// The operations without earlier steps.
const (
	opLoad  = "load"
	opConst = "const"
)

// loopOp is an operation that steps may have.
type loopOp struct {
	kernel kernel.Op
	// units is what computing it at a point is charged: no more than the share of a lane in
	// the vector instructions that a twin has for it.
	units uint64
}

var loopOps = map[string]loopOp{
	opLoad: {kernel.Load, 1}, opConst: {kernel.Const, 0},
	"neg": {kernel.Neg, 1}, "abs": {kernel.Abs, 1}, "sqrt": {kernel.Sqrt, 8}, "rsqrt": {kernel.Rsqrt, 16},
	"exp": {kernel.Exp, 32}, "log": {kernel.Log, 32}, "tanh": {kernel.Tanh, 32}, "erf": {kernel.Erf, 32},
	"logistic": {kernel.Logistic, 40}, "sign": {kernel.Sign, 4}, "floor": {kernel.Floor, 1}, "ceil": {kernel.Ceil, 1},
	"round": {kernel.Round, 1}, "isfinite": {kernel.IsFinite, 1}, "isnan": {kernel.IsNaN, 1},
	"ineg": {kernel.INeg, 1}, "iabs": {kernel.IAbs, 1}, "not": {kernel.Not, 1},
	"i2f": {kernel.IntToFloat, 1}, "f2i": {kernel.FloatToInt, 1},
	"add": {kernel.Add, 1}, "sub": {kernel.Sub, 1}, "mul": {kernel.Mul, 1}, "div": {kernel.Div, 8},
	"max": {kernel.Max, 1}, "min": {kernel.Min, 1},
	"eq": {kernel.Eq, 1}, "ne": {kernel.Ne, 1}, "lt": {kernel.Lt, 1}, "le": {kernel.Le, 1}, "gt": {kernel.Gt, 1},
	"ge":   {kernel.Ge, 1},
	"iadd": {kernel.IAdd, 1}, "isub": {kernel.ISub, 1}, "imul": {kernel.IMul, 1}, "imax": {kernel.IMax, 1},
	"imin": {kernel.IMin, 1}, "ieq": {kernel.IEq, 1}, "ine": {kernel.INe, 1}, "ilt": {kernel.ILt, 1},
	"ile": {kernel.ILe, 1}, "igt": {kernel.IGt, 1}, "ige": {kernel.IGe, 1},
	"and": {kernel.And, 1}, "or": {kernel.Or, 1}, "xor": {kernel.Xor, 1}, "select": {kernel.Select, 1},
}

// MarshalText writes the step as docs/WASM.md has it.
func (s LoopStep) MarshalText() ([]byte, error) {
	b := []byte(s.Op)
	switch s.Op {
	case opLoad:
		b = fmt.Appendf(b, " %d", s.Leaf)
	case opConst:
		b = fmt.Appendf(b, " %08x", s.Bits)
	}
	for _, in := range s.In {
		b = fmt.Appendf(b, " %d", in)
	}
	return b, nil
}

// UnmarshalText reads what MarshalText wrote. Other spellings of a step come back as
// that one, which a manifest's reader notices.
func (s *LoopStep) UnmarshalText(text []byte) error {
	name, rest, _ := strings.Cut(string(text), " ")
	op, ok := loopOps[name]
	if !ok {
		return fmt.Errorf("step %.40q: no such operation", text)
	}
	*s = LoopStep{Op: name}
	var err error
	switch name {
	case opLoad:
		s.Leaf, err = strconv.Atoi(rest)
	case opConst:
		var bits uint64
		bits, err = strconv.ParseUint(rest, 16, 32)
		s.Bits = uint32(bits)
	default:
		n := op.kernel.Operands()
		words := strings.SplitN(rest, " ", n+1)
		if len(words) != n {
			return fmt.Errorf("step %.40q: %d operands, want %d", text, len(words), n)
		}
		s.In = make([]int, n)
		for i, w := range words {
			if s.In[i], err = strconv.Atoi(w); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("step %.40q: %w", text, err)
	}
	return nil
}

// check holds the i-th step of a body against what it may refer to.
func (s *LoopStep) check(where string, i, leaves int) error {
	op, ok := loopOps[s.Op]
	switch {
	case !ok:
		return refuse(where, "step %d: no operation %.40q", i, s.Op)
	case len(s.In) != op.kernel.Operands():
		return refuse(where, "step %d: %s of %d operands, want %d", i, s.Op, len(s.In), op.kernel.Operands())
	case s.Op == opLoad && (s.Leaf < 0 || s.Leaf >= leaves):
		return refuse(where, "step %d: leaf %d of %d", i, s.Leaf, leaves)
	}
	if at := slices.IndexFunc(s.In, func(in int) bool { return in < 0 || in >= i }); at >= 0 {
		return refuse(where, "step %d: operand %d is step %d, want an earlier one", i, at, s.In[at])
	}
	return nil
}

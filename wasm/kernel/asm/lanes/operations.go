package main

import (
	"math"
	"slices"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// operation is one operation of a loop's steps.
type operation struct {
	name     string
	doc      string
	operands int
	unroll   int       // groups at a time
	consts   []float32 // to be kept in registers
	bits     []uint32
	emit     func(u *unit, x []VecVirtual) VecVirtual
}

const (
	signBit = 1 << 31
	ones    = math.MaxUint32
)

// The predicates of comparisons, as the instructions number them; without exceptions for quiet NaN.
const (
	equal        = 0
	unordered    = 3
	notEqual     = 4
	ordered      = 7
	less         = 17
	lessEqual    = 18
	notLessEqual = 22
	greaterEqual = 29
	greater      = 30
)

var operations = []operation{
	unary("copy", "copies", func(_ *unit, x VecVirtual) VecVirtual { return x }),
	bits(unary("neg", "negates", func(u *unit, x VecVirtual) VecVirtual { return u.xor(x, u.konst(signBit)) }), signBit),
	bits(unary("abs", "takes absolute values", abs), signBit-1),
	unary("sqrt", "takes square roots", func(u *unit, x VecVirtual) VecVirtual {
		return u.sqrt(x)
	}),
	consts(unary("rsqrt", "divides 1 by square roots", func(u *unit, x VecVirtual) VecVirtual {
		return u.div(u.floatRegister(1), u.sqrt(x))
	}), 1),
	consts(unary("sign", "takes signs", func(u *unit, x VecVirtual) VecVirtual {
		s := u.or(u.and(x, u.konst(signBit)), u.float(1))
		return u.choose(u.compare(greater, abs(u, x), u.floatRegister(0)), s, x)
	}), 0, 1),
	unary("floor", "rounds down", round(1)),
	unary("ceil", "rounds up", round(2)),
	unary("round", "rounds to even", round(0)),
	consts(unary("finite", "finds finite numbers", func(u *unit, x VecVirtual) VecVirtual {
		return u.compare(lessEqual, abs(u, x), u.float(math.MaxFloat32))
	}), math.MaxFloat32),
	unary("nan", "finds NaN", func(u *unit, x VecVirtual) VecVirtual { return u.compare(unordered, x, x) }),
	unary("ineg", "negates integers", func(u *unit, x VecVirtual) VecVirtual {
		r := u.reg()
		VPSUBD(x, u.register(0), r)
		return r
	}),
	unary("iabs", "takes absolute values of integers", func(u *unit, x VecVirtual) VecVirtual {
		VPABSD(x, x)
		return x
	}),
	bits(unary("not", "inverts bits", func(u *unit, x VecVirtual) VecVirtual { return u.xor(x, u.konst(ones)) }), ones),
	unary("tofloat", "turns integers into floats", func(u *unit, x VecVirtual) VecVirtual {
		VCVTDQ2PS(x, x)
		return x
	}),
	consts(unary("toint", "turns floats into integers, the nearest there is; NaN into 0", toInt), 1<<31),

	binary("add", "adds", func(x, y, z VecVirtual) { VADDPS(y, x, z) }),
	binary("sub", "subtracts", func(x, y, z VecVirtual) { VSUBPS(y, x, z) }),
	binary("mul", "multiplies", func(x, y, z VecVirtual) { VMULPS(y, x, z) }),
	{name: "div", doc: "divides", operands: 2, unroll: 2, emit: func(u *unit, x []VecVirtual) VecVirtual {
		return u.div(x[0], x[1])
	}},
	{name: "max", doc: "takes the greater", operands: 2, unroll: 2, emit: func(u *unit, x []VecVirtual) VecVirtual {
		return u.max(x[0], x[1])
	}},
	{name: "min", doc: "takes the less", operands: 2, unroll: 2, emit: func(u *unit, x []VecVirtual) VecVirtual {
		return u.min(x[0], x[1])
	}},
	comparison("eq", "equal", equal), comparison("ne", "not equal", notEqual),
	comparison("lt", "less", less), comparison("le", "less or equal", lessEqual),
	comparison("gt", "greater", greater), comparison("ge", "greater or equal", greaterEqual),
	binary("iadd", "adds integers", func(x, y, z VecVirtual) { VPADDD(y, x, z) }),
	binary("isub", "subtracts integers", func(x, y, z VecVirtual) { VPSUBD(y, x, z) }),
	binary("imul", "multiplies integers", func(x, y, z VecVirtual) { VPMULLD(y, x, z) }),
	binary("imax", "takes the greater integer", func(x, y, z VecVirtual) { VPMAXSD(y, x, z) }),
	binary("imin", "takes the less integer", func(x, y, z VecVirtual) { VPMINSD(y, x, z) }),
	integers("ieq", "equal", 0), integers("ine", "not equal", 4),
	integers("ilt", "less", 1), integers("ile", "less or equal", 2),
	integers("igt", "greater", 6), integers("ige", "greater or equal", 5),
	bitwise("and", func(u *unit, x, y VecVirtual) VecVirtual { return u.and(x, y) }),
	bitwise("or", func(u *unit, x, y VecVirtual) VecVirtual { return u.or(x, y) }),
	bitwise("xor", func(u *unit, x, y VecVirtual) VecVirtual { return u.xor(x, y) }),
	{name: "choose", doc: "takes bits of one or the other", operands: 3, unroll: 2,
		emit: func(u *unit, x []VecVirtual) VecVirtual { return u.choose(x[0], x[1], x[2]) }},

	{name: "exp", doc: "takes e to a power", operands: 1, unroll: 1, consts: expConsts, bits: []uint32{127}, emit: exp},
	{name: "logistic", doc: "is 1 / (1 + exp(-x))", operands: 1, unroll: 1, consts: expConsts,
		bits: []uint32{127, signBit}, emit: func(u *unit, x []VecVirtual) VecVirtual {
			e := exp(u, []VecVirtual{u.xor(x[0], u.konst(signBit))})
			VADDPS(u.float(1), e, e)
			return u.div(u.floatRegister(1), e)
		}},
	{name: "log", doc: "takes logarithms", operands: 1, unroll: 1, consts: logTerms, emit: log},
	{name: "tanh", doc: "takes hyperbolic tangents", operands: 1, unroll: 1,
		consts: slices.Concat([]float32{tanhBound, -tanhBound}, tanhOver, tanhUnder),
		emit: func(u *unit, x []VecVirtual) VecVirtual {
			return rational(u, x[0], tanhBound, tanhOver, tanhUnder)
		}},
	{name: "erf", doc: "takes error functions", operands: 1, unroll: 1,
		consts: slices.Concat([]float32{4, -4}, erfOver, erfUnder),
		emit:   func(u *unit, x []VecVirtual) VecVirtual { return rational(u, x[0], 4, erfOver, erfUnder) }},
}

func unary(name, doc string, emit func(u *unit, x VecVirtual) VecVirtual) operation {
	return operation{name: name, doc: doc, operands: 1, unroll: 4,
		emit: func(u *unit, x []VecVirtual) VecVirtual { return emit(u, x[0]) }}
}

func consts(o operation, c ...float32) operation {
	o.consts, o.unroll = c, 2
	return o
}

func bits(o operation, b ...uint32) operation {
	o.bits = b
	return o
}

func binary(name, doc string, emit func(x, y, z VecVirtual)) operation {
	return operation{name: name, doc: doc, operands: 2, unroll: 4, emit: func(_ *unit, x []VecVirtual) VecVirtual {
		emit(x[0], x[1], x[0])
		return x[0]
	}}
}

func bitwise(name string, emit func(u *unit, x, y VecVirtual) VecVirtual) operation {
	return operation{name: name, doc: "combines bits by " + name, operands: 2, unroll: 4,
		emit: func(u *unit, x []VecVirtual) VecVirtual { return emit(u, x[0], x[1]) }}
}

func comparison(name, doc string, predicate uint8) operation {
	return operation{name: name, doc: "finds what is " + doc, operands: 2, unroll: 2,
		emit: func(u *unit, x []VecVirtual) VecVirtual { return u.compare(predicate, x[0], x[1]) }}
}

func integers(name, doc string, predicate uint8) operation {
	return operation{name: name, doc: "finds integers that are " + doc, operands: 2, unroll: 2,
		emit: func(u *unit, x []VecVirtual) VecVirtual { return u.compareInts(predicate, x[0], x[1]) }}
}

func round(how uint8) func(u *unit, x VecVirtual) VecVirtual {
	return func(u *unit, x VecVirtual) VecVirtual { return u.round(how, x) }
}

// round rounds floats to whole ones: 0 to even, 1 down, 2 up.
func (u *unit) round(how uint8, x VecVirtual) VecVirtual {
	r := u.reg()
	if u.wide() {
		VRNDSCALEPS(Imm(uint64(8|how)), x, r)
	} else {
		VROUNDPS(Imm(uint64(8|how)), x, r)
	}
	return r
}

func (u *unit) and(x VecVirtual, y Op) VecVirtual {
	r := u.reg()
	if u.wide() {
		VPANDD(y, x, r)
	} else {
		VPAND(y, x, r)
	}
	return r
}

func (u *unit) or(x VecVirtual, y Op) VecVirtual {
	r := u.reg()
	if u.wide() {
		VPORD(y, x, r)
	} else {
		VPOR(y, x, r)
	}
	return r
}

func (u *unit) xor(x VecVirtual, y Op) VecVirtual {
	r := u.reg()
	if u.wide() {
		VPXORD(y, x, r)
	} else {
		VPXOR(y, x, r)
	}
	return r
}

func abs(u *unit, x VecVirtual) VecVirtual { return u.and(x, u.konst(signBit-1)) }

// lanesOf turns a mask into lanes of ones and zeros.
func (u *unit) lanesOf(mask Register) VecVirtual {
	r := u.reg()
	VPTERNLOGD_Z(Imm(0xff), r, r, mask, r)
	return r
}

func (u *unit) compare(predicate uint8, x VecVirtual, y Op) VecVirtual {
	if u.wide() {
		mask := K()
		VCMPPS(Imm(uint64(predicate)), y, x, mask)
		return u.lanesOf(mask)
	}
	r := u.reg()
	VCMPPS(Imm(uint64(predicate)), y, x, r)
	return r
}

// compareInts has the predicates of VPCMPD.
func (u *unit) compareInts(predicate uint8, x, y VecVirtual) VecVirtual {
	if u.wide() {
		mask := K()
		VPCMPD(Imm(uint64(predicate)), y, x, mask)
		return u.lanesOf(mask)
	}
	r := u.reg()
	switch predicate {
	case 0, 4:
		VPCMPEQD(y, x, r)
	case 6, 2:
		VPCMPGTD(y, x, r)
	case 1, 5:
		VPCMPGTD(x, y, r)
	}
	if predicate == 4 || predicate == 2 || predicate == 5 {
		r = u.xor(r, u.konst(ones))
	}
	return r
}

// choose takes the bits of x where the mask's are set, and of y where they are not.
func (u *unit) choose(mask, x, y VecVirtual) VecVirtual {
	if u.wide() {
		r := u.reg()
		VMOVDQA32(mask, r)
		VPTERNLOGD(Imm(0xca), y, x, r)
		return r
	}
	r, s := u.reg(), u.reg()
	VPAND(x, mask, r)
	VPANDN(y, mask, s)
	VPOR(s, r, r)
	return r
}

// max and min are WebAssembly's, NaN where either is and +0 above -0. The instructions give their second operand
// for NaN and for zeros: both orders are tried. Ones in all bits are a NaN.
func (u *unit) max(x, y VecVirtual) VecVirtual {
	r, s := u.reg(), u.reg()
	VMAXPS(y, x, r)
	VMAXPS(x, y, s)
	r = u.and(r, s)
	if u.wide() {
		nan := K()
		VCMPPS(Imm(unordered), y, x, nan)
		VPTERNLOGD(Imm(0xff), r, r, nan, r)
		return r
	}
	return u.or(r, u.compare(unordered, x, y))
}

func (u *unit) min(x, y VecVirtual) VecVirtual {
	r, s := u.reg(), u.reg()
	VMINPS(y, x, r)
	VMINPS(x, y, s)
	return u.or(r, s) // a NaN's bits and others are a NaN's
}

// div and sqrt: of 512 bits the instructions take three times as long as of 256, where they could take twice.
func (u *unit) div(x, y VecVirtual) VecVirtual {
	return u.halves(func(x, y, r Register) { VDIVPS(y, x, r) }, x, y)
}

func (u *unit) sqrt(x VecVirtual) VecVirtual {
	return u.halves(func(x, _, r Register) { VSQRTPS(x, r) }, x, x)
}

func (u *unit) halves(do func(x, y, r Register), x, y VecVirtual) VecVirtual {
	r := u.reg()
	if !u.wide() {
		do(x, y, r)
		return r
	}
	upperX, upperY := YMM(), YMM()
	VEXTRACTF64X4(Imm(1), x, upperX)
	if x == y {
		upperY = upperX
	} else {
		VEXTRACTF64X4(Imm(1), y, upperY)
	}
	upper := YMM()
	do(x.AsY(), y.AsY(), r.AsY())
	do(upperX, upperY, upper)
	VINSERTF64X4(Imm(1), upper, r, r)
	return r
}

// pairs are two operations, each rounded.
func pairs() (list []operation) {
	type basic struct {
		name, doc string
		emit      func(x, y, z VecVirtual)
	}
	add := basic{"add", "adds", func(x, y, z VecVirtual) { VADDPS(y, x, z) }}
	mul := basic{"mul", "multiplies", func(x, y, z VecVirtual) { VMULPS(y, x, z) }}
	sub := basic{"sub", "subtracts", func(x, y, z VecVirtual) { VSUBPS(y, x, z) }}
	from := basic{"from", "subtracts that", func(x, y, z VecVirtual) { VSUBPS(x, y, z) }}
	for _, first := range []basic{add, mul, sub} {
		for _, second := range []basic{add, mul, sub, from} {
			name := first.name + strings.ToUpper(second.name[:1]) + second.name[1:]
			list = append(list, operation{name: name, doc: first.doc + " and " + second.doc, operands: 3,
				unroll: 4, emit: func(_ *unit, x []VecVirtual) VecVirtual {
					first.emit(x[0], x[1], x[0])
					second.emit(x[0], x[2], x[0])
					return x[0]
				}})
		}
	}
	return list
}

// toInt: the instruction gives the least integer for NaN and what does not fit.
func toInt(u *unit, x VecVirtual) VecVirtual {
	i := u.reg()
	VCVTTPS2DQ(x, i)
	i = u.xor(i, u.compare(greaterEqual, x, u.float(1<<31)))
	return u.and(i, u.compare(ordered, x, x))
}

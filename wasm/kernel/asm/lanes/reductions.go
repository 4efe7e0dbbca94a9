package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// reduction combines values into results.
type reduction struct {
	name    string
	neutral float32
	combine func(u *unit, acc, x VecVirtual) VecVirtual
}

var reductions = []reduction{
	{"Sum", 0, func(_ *unit, acc, x VecVirtual) VecVirtual { VADDPS(x, acc, acc); return acc }},
	{"Product", 1, func(_ *unit, acc, x VecVirtual) VecVirtual { VMULPS(x, acc, acc); return acc }},
	{"Max", float32(math.Inf(-1)), func(u *unit, acc, x VecVirtual) VecVirtual { return u.max(acc, x) }},
	{"Min", float32(math.Inf(1)), func(u *unit, acc, x VecVirtual) VecVirtual { return u.min(acc, x) }},
}

// into combines a register in place, so that it can be one from one round to the next.
func (u *unit) into(o reduction, acc, x VecVirtual) {
	if r := o.combine(u, acc, x); r != acc {
		VMOVUPS(r, acc)
	}
}

// quarter returns one of the four registers of 128 bits that hold a group.
func (u *unit) quarter(acc []VecVirtual, i int) VecVirtual {
	x := XMM()
	switch {
	case u.wide() && i > 0:
		VEXTRACTF32X4(Imm(uint64(i)), acc[0], x)
	case u.wide():
		VMOVUPS(acc[0].AsX(), x)
	case i%2 == 1:
		VEXTRACTF128(Imm(1), acc[i/2], x)
	default:
		VMOVUPS(acc[i/2].AsX(), x)
	}
	return x
}

// rows reduces rows of whole groups: 16 partial results each, which are combined as WebAssembly code does it.
func (u *unit) rows(o reduction) {
	u.text("rows"+o.name, "func(dst, src *uint32, rows, groups int)", "reduces rows of groups, each to a value.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	rows, groups := Load(Param("rows"), GP64()), Load(Param("groups"), GP64())
	left := GP64()
	u.keep([]uint32{math.Float32bits(o.neutral)})
	Label("row")
	acc := make([]VecVirtual, u.vectors())
	for h := range acc {
		acc[h] = u.reg()
		VMOVUPS(u.float(o.neutral), acc[h])
	}
	MOVQ(groups, left)
	Label("group")
	for h := range acc {
		x := u.reg()
		VMOVUPS(Mem{Base: src, Disp: h * u.bytes()}, x)
		u.into(o, acc[h], x)
	}
	ADDQ(I32(64), src)
	DECQ(left)
	JNE(LabelRef("group"))
	half := unit{bits: 128} // whose instructions are those of 256 bits
	q0 := half.combined(o, u.quarter(acc, 0), u.quarter(acc, 1))
	q2 := half.combined(o, u.quarter(acc, 2), u.quarter(acc, 3))
	q := half.combined(o, q0, q2)
	for _, lanes := range []uint64{0x4e, 0xb1} {
		s := XMM()
		VPERMILPS(Imm(lanes), q, s)
		q = half.combined(o, q, s)
	}
	VMOVSS(q, Mem{Base: dst})
	ADDQ(I32(4), dst)
	DECQ(rows)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}

func (u *unit) combined(o reduction, x, y VecVirtual) VecVirtual { return o.combine(u, x, y) }

// columns combines accumulators with rows, many side by side as one must wait for the one before.
func (u *unit) columns(o reduction) {
	u.text("columns"+o.name, "func(acc, src *uint32, rows, by, groups int)",
		"combines groups of accumulators with rows, by bytes apart.")
	at, src := Load(Param("acc"), GP64()), Load(Param("src"), GP64())
	rows, by, groups := Load(Param("rows"), GP64()), Load(Param("by"), GP64()), Load(Param("groups"), GP64())
	u.keep(nil)
	for _, n := range []int{8 / u.vectors(), 1} {
		next := fmt.Sprintf("less%d", n)
		Label(fmt.Sprintf("groups%d", n))
		CMPQ(groups, I32(int32(n)))
		JLT(LabelRef(next))
		acc := make([]VecVirtual, n*u.vectors())
		for i := range acc {
			acc[i] = u.reg()
			VMOVUPS(Mem{Base: at, Disp: i * u.bytes()}, acc[i])
		}
		from, left := GP64(), GP64()
		MOVQ(src, from)
		MOVQ(rows, left)
		row := fmt.Sprintf("row%d", n)
		Label(row)
		for i := range acc {
			x := u.reg()
			VMOVUPS(Mem{Base: from, Disp: i * u.bytes()}, x)
			u.into(o, acc[i], x)
		}
		ADDQ(by, from)
		DECQ(left)
		JNE(LabelRef(row))
		for i := range acc {
			VMOVUPS(acc[i], Mem{Base: at, Disp: i * u.bytes()})
		}
		ADDQ(I32(int32(64*n)), at)
		ADDQ(I32(int32(64*n)), src)
		SUBQ(I32(int32(n)), groups)
		JMP(LabelRef(fmt.Sprintf("groups%d", n)))
		Label(next)
	}
	VZEROUPPER()
	RET()
}

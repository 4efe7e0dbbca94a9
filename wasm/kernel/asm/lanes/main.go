// Command lanes writes the amd64 assembly of package kernel's loops: each operation over groups of 16 values, with
// registers of 256 and 512 bits. Every function is a leaf of some microseconds at most, as Go cannot preempt assembly.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kernel.lanes, in its order.
const (
	fieldAt     = 0  // the result and three operands
	fieldStep   = 32 // of the operands
	fieldGroups = 56
	fieldRows   = 64
	fieldJump   = 72 // of the result and the operands
)

func main() {
	ConstraintExpr("amd64")
	for _, bits := range []int{512, 256} {
		for _, o := range append(operations, pairs()...) {
			u := unit{bits: bits}
			u.operation(o)
		}
		for _, o := range reductions {
			u := unit{bits: bits}
			u.rows(o)
			u.columns(o)
		}
		u := unit{bits: bits}
		u.spread()
	}
	table()
	Generate()
}

// unit writes functions for one width of registers.
type unit struct {
	bits   int
	consts map[uint32]VecVirtual // in registers
}

func (u *unit) wide() bool { return u.bits == 512 }

func (u *unit) bytes() int { return u.bits / 8 }

// vectors is how many registers hold a group.
func (u *unit) vectors() int { return 512 / u.bits }

func (u *unit) reg() VecVirtual {
	switch u.bits {
	case 512:
		return ZMM()
	case 256:
		return YMM()
	}
	return XMM()
}

// constants are all that occur, each 8 times in a row in memory.
var constants []uint32

func address(bits uint32) Mem {
	at := 0
	for at < len(constants) && constants[at] != bits {
		at++
	}
	if at == len(constants) {
		constants = append(constants, bits)
	}
	return NewDataAddr(Symbol{Name: "lanes", Static: true}, 32*at)
}

func table() {
	GLOBL("lanes", RODATA|NOPTR)
	for i, bits := range constants {
		for lane := range 8 {
			DATA(32*i+4*lane, U32(bits))
		}
	}
}

// keep puts constants in registers, where there are enough of them.
func (u *unit) keep(bits []uint32) {
	u.consts = map[uint32]VecVirtual{}
	if !u.wide() {
		return
	}
	for _, b := range bits {
		if u.consts[b] == nil {
			u.consts[b] = u.reg()
			VBROADCASTSS(address(b), u.consts[b])
		}
	}
}

// konst is a constant as an operand; in a register where it is kept.
func (u *unit) konst(bits uint32) Op {
	if r := u.consts[bits]; r != nil {
		return r
	}
	if !u.wide() {
		return address(bits)
	}
	r := u.reg()
	VBROADCASTSS(address(bits), r)
	return r
}

// register is a constant in a register.
func (u *unit) register(bits uint32) VecVirtual {
	switch k := u.konst(bits).(type) {
	case VecVirtual:
		return k
	default:
		r := u.reg()
		VMOVUPS(k, r)
		return r
	}
}

func (u *unit) float(x float32) Op                 { return u.konst(math.Float32bits(x)) }
func (u *unit) floatRegister(x float32) VecVirtual { return u.register(math.Float32bits(x)) }

func (u *unit) text(name, signature, doc string) {
	name = fmt.Sprintf("%s%d", name, u.bits)
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

// operation writes a function that applies an operation to rows of groups of lanes.
func (u *unit) operation(o operation) {
	u.text(o.name, "func(l *[13]uintptr)", o.doc+".")
	l := Load(Param("l"), GP64())
	field := func(offset int) GPVirtual {
		r := GP64()
		MOVQ(Mem{Base: l, Disp: offset}, r)
		return r
	}
	dst, rows, left := field(fieldAt), field(fieldRows), GP64()
	type operand struct{ at, step, thrice GPVirtual }
	in := make([]operand, o.operands)
	unroll := o.unroll
	for i := range in {
		in[i] = operand{at: field(fieldAt + 8 + 8*i), step: field(fieldStep + 8*i)}
		if unroll == 4 {
			in[i].thrice = GP64()
			LEAQ(Mem{Base: in[i].step, Index: in[i].step, Scale: 2}, in[i].thrice)
		}
	}
	var keep []uint32
	for _, c := range o.consts {
		keep = append(keep, math.Float32bits(c))
	}
	u.keep(append(keep, o.bits...))
	body := func(n int) {
		results := make([]VecVirtual, 0, n*u.vectors())
		for g := range n {
			for h := range u.vectors() {
				var x []VecVirtual
				for _, i := range in {
					m := Mem{Base: i.at, Disp: h * u.bytes()}
					switch g {
					case 1, 2:
						m.Index, m.Scale = i.step, uint8(g)
					case 3:
						m.Index, m.Scale = i.thrice, 1
					}
					r := u.reg()
					VMOVUPS(m, r)
					x = append(x, r)
				}
				results = append(results, o.emit(u, x))
			}
		}
		for i, r := range results {
			VMOVUPS(r, Mem{Base: dst, Disp: i * u.bytes()})
		}
		ADDQ(I32(64*n), dst)
		for _, i := range in {
			switch n {
			case 1:
				ADDQ(i.step, i.at)
			default:
				LEAQ(Mem{Base: i.at, Index: i.step, Scale: uint8(n)}, i.at)
			}
		}
	}
	Label("row")
	MOVQ(Mem{Base: l, Disp: fieldGroups}, left)
	if unroll == 1 {
		Label("group")
		body(1)
		DECQ(left)
		JNE(LabelRef("group"))
	} else {
		SUBQ(I32(int32(unroll)), left)
		JLT(LabelRef("rest"))
		Label("groups")
		body(unroll)
		SUBQ(I32(int32(unroll)), left)
		JGE(LabelRef("groups"))
		Label("rest") // of unroll less than there are left
		for n := unroll / 2; n > 0; n /= 2 {
			next := fmt.Sprintf("less%d", n)
			TESTQ(I32(int32(n)), left)
			JEQ(LabelRef(next))
			body(n)
			Label(next)
		}
	}
	ADDQ(Mem{Base: l, Disp: fieldJump}, dst)
	for i := range in {
		ADDQ(Mem{Base: l, Disp: fieldJump + 8 + 8*i}, in[i].at)
	}
	DECQ(rows)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// spread writes each of some values many times over.
func (u *unit) spread() {
	u.text("spread", "func(dst, src *uint32, rows, cols int)",
		"writes each of rows values cols times, and up to 15 times more behind the last.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	rows, cols := Load(Param("rows"), GP64()), Load(Param("cols"), GP64())
	at, left := GP64(), GP64()
	CMPQ(cols, I32(16))
	JNE(LabelRef("row"))
	// A group each: four at a time.
	SUBQ(I32(4), rows)
	JLT(LabelRef("few"))
	Label("four")
	for i := range 4 {
		v := u.reg()
		VBROADCASTSS(Mem{Base: src, Disp: 4 * i}, v)
		for h := range u.vectors() {
			VMOVUPS(v, Mem{Base: dst, Disp: 64*i + h*u.bytes()})
		}
	}
	ADDQ(I32(16), src)
	ADDQ(I32(256), dst)
	SUBQ(I32(4), rows)
	JGE(LabelRef("four"))
	Label("few")
	ADDQ(I32(4), rows)
	JEQ(LabelRef("done"))
	Label("row")
	v := u.reg()
	VBROADCASTSS(Mem{Base: src}, v)
	MOVQ(dst, at)
	MOVQ(cols, left)
	Label("group")
	for h := range u.vectors() {
		VMOVUPS(v, Mem{Base: at, Disp: h * u.bytes()})
	}
	ADDQ(I32(64), at)
	SUBQ(I32(16), left)
	JGT(LabelRef("group"))
	ADDQ(I32(4), src)
	LEAQ(Mem{Base: dst, Index: cols, Scale: 4}, dst)
	DECQ(rows)
	JNE(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

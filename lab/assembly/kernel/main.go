// Command kernel writes the amd64 assembly of package kernel: tiles of C for registers of 256 and 512 bits, and what packs
// their operands. Every function is a leaf of some microseconds at most, as Go cannot preempt assembly.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kernel.tile, in its order.
const (
	fieldA = 8 * iota
	fieldRow
	fieldTerm
	fieldB
	fieldNext
	fieldC
	fieldLine
	fieldK
	fieldAdd
	fieldCols
	fieldMask
)

func main() {
	ConstraintExpr("amd64")
	for _, a := range []arithmetic{{"tile", rounded}, {"fused", fused}} {
		for _, rows := range []int{8, 4, 2, 1} {
			for panels := 1; panels <= 3; panels++ {
				tile512(a, rows, panels)
			}
		}
		for _, rows := range []int{6, 4, 2, 1} {
			tile256(a, rows)
		}
		codes256(a)
	}
	transpose()
	gather()
	decode()
	unpack()
	Generate()
}

// arithmetic is how a term is added to a sum.
type arithmetic struct {
	name string
	add  func(x, y, sum, spare VecVirtual)
}

// rounded multiplies and adds apart, and each rounds.
func rounded(x, y, sum, spare VecVirtual) {
	VMULPS(y, x, spare)
	VADDPS(spare, sum, sum)
}

// fused rounds once.
func fused(x, y, sum, _ VecVirtual) { VFMADD231PS(y, x, sum) }

// field loads a field of the tile that t points to.
func field(t Register, offset int) GPVirtual {
	r := GP64()
	MOVQ(Mem{Base: t, Disp: offset}, r)
	return r
}

// lines addresses up to 8 evenly spaced places: base, base + by, ...
type lines struct{ base, by, thrice, fourth Register }

func newLines(base, by Register, n int) lines {
	l := lines{base: base, by: by}
	if n > 3 {
		thrice := GP64()
		LEAQ(Mem{Base: by, Index: by, Scale: 2}, thrice)
		l.thrice = thrice
	}
	if n > 4 {
		fourth := GP64()
		LEAQ(Mem{Base: base, Index: by, Scale: 4}, fourth)
		l.fourth = fourth
	}
	return l
}

func (l lines) at(i, offset int) Mem {
	base := l.base
	if i >= 4 {
		base, i = l.fourth, i-4
	}
	m := Mem{Base: base, Disp: offset}
	switch i {
	case 1, 2:
		m.Index, m.Scale = l.by, uint8(i)
	case 3:
		m.Index, m.Scale = l.thrice, 1
	}
	return m
}

// move adds n to all the places.
func (l lines) move(n Op) {
	ADDQ(n, l.base)
	if l.fourth != nil {
		ADDQ(n, l.fourth)
	}
}

// tile512 computes rows x 16*panels of C.
func tile512(how arithmetic, rows, panels int) {
	name := fmt.Sprintf("%s512x%dx%d", how.name, rows, panels)
	TEXT(name, NOSPLIT, "func(t *[11]uintptr)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s computes %d rows and %d panels of C, 512 bits at a time.", name, rows, panels))
	t := Load(Param("t"), GP64())
	c := newLines(field(t, fieldC), field(t, fieldLine), rows)
	// The last panel may have fewer columns: the others' lanes are neither read nor written.
	ones, mask := GP64(), K()
	MOVQ(Mem{Base: t, Disp: fieldCols}, RCX)
	MOVQ(I32(1), ones)
	SHLQ(CL, ones)
	DECQ(ones)
	KMOVW(ones.As32(), mask)
	sum := make([][]VecVirtual, rows)
	for r := range sum {
		for range panels {
			sum[r] = append(sum[r], ZMM())
		}
	}
	each := func(do func(z VecVirtual, m Mem, last bool)) {
		for r := range sum {
			for p, z := range sum[r] {
				do(z, c.at(r, 64*p), p == panels-1)
			}
		}
	}
	add := field(t, fieldAdd)
	TESTQ(add, add)
	JZ(LabelRef("zero"))
	each(func(z VecVirtual, m Mem, last bool) {
		if last {
			VMOVUPS_Z(m, mask, z)
		} else {
			VMOVUPS(m, z)
		}
	})
	JMP(LabelRef("begin"))
	Label("zero")
	each(func(z VecVirtual, _ Mem, _ bool) { VPXORD(z, z, z) })
	Label("begin")
	a := newLines(field(t, fieldA), field(t, fieldRow), rows)
	term, b, next, k := field(t, fieldTerm), field(t, fieldB), field(t, fieldNext), field(t, fieldK)
	bs := make([]VecVirtual, panels)
	for p := range bs {
		bs[p] = ZMM()
	}
	Label("term")
	for p := range bs {
		m := Mem{Base: b}
		if p > 0 {
			m.Index, m.Scale = next, uint8(p)
		}
		VMOVUPS(m, bs[p])
	}
	for r := range rows {
		x := ZMM()
		VBROADCASTSS(a.at(r, 0), x)
		for p := range bs {
			how.add(x, bs[p], sum[r][p], ZMM())
		}
	}
	a.move(term)
	ADDQ(I32(64), b)
	DECQ(k)
	JNZ(LabelRef("term"))
	each(func(z VecVirtual, m Mem, last bool) {
		if last {
			VMOVUPS(z, mask, m)
		} else {
			VMOVUPS(z, m)
		}
	})
	VZEROUPPER()
	RET()
}

// tile256 computes rows x 16 of C.
func tile256(how arithmetic, rows int) {
	name := fmt.Sprintf("%s256x%d", how.name, rows)
	TEXT(name, NOSPLIT, "func(t *[11]uintptr)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s computes %d rows and one panel of C, 256 bits at a time.", name, rows))
	t := Load(Param("t"), GP64())
	c := newLines(field(t, fieldC), field(t, fieldLine), rows)
	cols, mask := field(t, fieldCols), field(t, fieldMask)
	sum := make([][2]VecVirtual, rows)
	for r := range sum {
		sum[r] = [2]VecVirtual{YMM(), YMM()}
	}
	each := func(do func(z VecVirtual, m Mem, half int)) {
		for r := range sum {
			for h, y := range sum[r] {
				do(y, c.at(r, 32*h), h)
			}
		}
	}
	masks := func() (m [2]VecVirtual) {
		for h := range m {
			m[h] = YMM()
			VMOVDQU(Mem{Base: mask, Disp: 32 * h}, m[h])
		}
		return m
	}
	add := field(t, fieldAdd)
	TESTQ(add, add)
	JZ(LabelRef("zero"))
	CMPQ(cols, I32(16))
	JNE(LabelRef("some"))
	each(func(y VecVirtual, m Mem, _ int) { VMOVUPS(m, y) })
	JMP(LabelRef("begin"))
	Label("some")
	ms := masks()
	each(func(y VecVirtual, m Mem, h int) { VMASKMOVPS(m, ms[h], y) })
	JMP(LabelRef("begin"))
	Label("zero")
	each(func(y VecVirtual, _ Mem, _ int) { VXORPS(y, y, y) })
	Label("begin")
	a := newLines(field(t, fieldA), field(t, fieldRow), rows)
	term, b, k := field(t, fieldTerm), field(t, fieldB), field(t, fieldK)
	bs := [2]VecVirtual{YMM(), YMM()}
	Label("term")
	for h := range bs {
		VMOVUPS(Mem{Base: b, Disp: 32 * h}, bs[h])
	}
	for r := range rows {
		x := YMM()
		VBROADCASTSS(a.at(r, 0), x)
		for h := range bs {
			how.add(x, bs[h], sum[r][h], YMM())
		}
	}
	a.move(term)
	ADDQ(I32(64), b)
	DECQ(k)
	JNZ(LabelRef("term"))
	CMPQ(cols, I32(16))
	JNE(LabelRef("part"))
	each(func(y VecVirtual, m Mem, _ int) { VMOVUPS(y, m) })
	VZEROUPPER()
	RET()
	Label("part")
	ms = masks()
	each(func(y VecVirtual, m Mem, h int) { VMASKMOVPS(y, ms[h], m) })
	VZEROUPPER()
	RET()
}

package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// codes256 computes a row of one panel of C against columns in 4 bits. A word of 32 bits has eight terms of a column, so a
// register has them of eight columns: a term's codes are shifted down and looked up there, in two registers of 8 levels
// each; the code's highest bit, shifted to a lane's sign, chooses between them.
func codes256(how arithmetic) {
	name := how.name + "Codes256"
	TEXT(name, NOSPLIT, "func(t *[11]uintptr)")
	Pragma("noescape")
	Doc(name + " computes a row of one panel of C against columns in 4 bits, 256 bits at a time.")
	t := Load(Param("t"), GP64())
	mask, add, c := field(t, fieldMask), field(t, fieldAdd), field(t, fieldC)
	sum, lanes := [2]VecVirtual{YMM(), YMM()}, [2]VecVirtual{YMM(), YMM()}
	for h := range sum {
		VXORPS(sum[h], sum[h], sum[h])
	}
	TESTQ(add, add)
	JZ(LabelRef("begin"))
	for h := range sum {
		VMOVDQU(Mem{Base: mask, Disp: 32 * h}, lanes[h])
		VMASKMOVPS(Mem{Base: c, Disp: 32 * h}, lanes[h], sum[h])
	}
	Label("begin")
	a, step := newLines(field(t, fieldA), field(t, fieldTerm), 8), GP64()
	MOVQ(a.by, step)
	SHLQ(Imm(3), step)
	b, scales, k := field(t, fieldB), field(t, fieldNext), field(t, fieldK)
	ADDQ(b, scales)
	eachWord(b, scales, k, func(value func(i, h int) VecVirtual) {
		for i := range 8 {
			x := YMM()
			VBROADCASTSS(a.at(i, 0), x)
			for h := range sum {
				how.add(x, value(i, h), sum[h], YMM())
			}
		}
		a.move(step)
	})
	for h := range sum {
		VMOVDQU(Mem{Base: mask, Disp: 32 * h}, lanes[h])
		VMASKMOVPS(sum[h], lanes[h], Mem{Base: c, Disp: 32 * h})
	}
	VZEROUPPER()
	RET()
}

// value is what the i-th codes of words stand for.
func value(i int, word, low, high, scale VecVirtual) VecVirtual {
	at := 8*(i/2) + 4*(1-i%2) // a byte's first value is in its high half
	code, sign, lo, hi := YMM(), YMM(), YMM(), YMM()
	VPSRLD(Imm(uint64(at)), word, code) // of whose lanes a look-up sees three bits
	VPSLLD(Imm(uint64(28-at)), word, sign)
	VPERMPS(low, code, lo)
	VPERMPS(high, code, hi)
	VBLENDVPS(sign, hi, lo, lo)
	VMULPS(scale, lo, lo)
	return lo
}

// unpack writes a panel's values.
func unpack() {
	TEXT("unpack256", NOSPLIT, "func(dst *float32, words *float32, blocks int)")
	Pragma("noescape")
	Doc("unpack256 writes the values of a panel's codes, whose scales are behind them.")
	dst, b, k := Load(Param("dst"), GP64()), Load(Param("words"), GP64()), Load(Param("blocks"), GP64())
	scales := GP64()
	MOVQ(k, scales)
	SHLQ(Imm(9), scales) // 8 words of 16 columns a block
	ADDQ(b, scales)
	eachWord(b, scales, k, func(value func(i, h int) VecVirtual) {
		for i := range 8 {
			for h := range 2 {
				VMOVUPS(value(i, h), Mem{Base: dst, Disp: 64*i + 32*h})
			}
		}
		ADDQ(I32(512), dst)
	})
	VZEROUPPER()
	RET()
}

// eachWord goes through k blocks of a panel's words at b, whose scales are at scales; value is what the i-th codes of a word
// stand for, in the h-th half of the panel's columns.
func eachWord(b, scales, k Register, do func(value func(i, h int) VecVirtual)) {
	low, high := levels()
	scale, word := [2]VecVirtual{YMM(), YMM()}, [2]VecVirtual{YMM(), YMM()}
	words := GP64()
	Label("block")
	for h := range scale {
		VMOVUPS(Mem{Base: scales, Disp: 32 * h}, scale[h])
	}
	ADDQ(Imm(64), scales)
	MOVQ(I32(8), words)
	Label("word")
	for h := range word {
		VMOVDQU(Mem{Base: b, Disp: 32 * h}, word[h])
	}
	do(func(i, h int) VecVirtual { return value(i, word[h], low, high, scale[h]) })
	ADDQ(Imm(64), b)
	DECQ(words)
	JNZ(LabelRef("word"))
	DECQ(k)
	JNZ(LabelRef("block"))
}

// levels loads what the codes below 8 stand for, and what those above do.
func levels() (low, high VecVirtual) {
	table := GP64()
	LEAQ(NewDataAddr(Symbol{Name: "·levels"}, 0), table)
	low, high = YMM(), YMM()
	VMOVUPS(Mem{Base: table}, low)
	VMOVUPS(Mem{Base: table, Disp: 32}, high)
	return low, high
}

package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// floats loads a parameter that counts floats as bytes.
func floats(name string) Register {
	r := Load(Param(name), GP64())
	SHLQ(Imm(2), r)
	return r
}

// transpose turns 8 x 8 blocks: 8 rows of src, each n floats long, become n rows of 8 in dst.
func transpose() {
	TEXT("transpose256", NOSPLIT, "func(dst *float32, to int, src *float32, from int, n int)")
	Pragma("noescape")
	Doc("transpose256 packs 8 rows of n consecutive floats, n a multiple of 8.")
	dst, to := Load(Param("dst"), GP64()), floats("to")
	src, from := Load(Param("src"), GP64()), floats("from")
	n, step := Load(Param("n"), GP64()), GP64()
	in, out := newLines(src, from, 8), newLines(dst, to, 8)
	MOVQ(to, step)
	SHLQ(Imm(3), step)
	Label("block")
	var row, pair, quad [8]VecVirtual
	for i := range row {
		row[i] = YMM()
		VMOVUPS(in.at(i, 0), row[i])
	}
	for i := range pair { // pairs of rows interleave: a0 b0 a1 b1 | a4 b4 a5 b5 and a2 b2 a3 b3 | a6 b6 a7 b7
		pair[i] = YMM()
		if i%2 == 0 {
			VUNPCKLPS(row[i+1], row[i], pair[i])
		} else {
			VUNPCKHPS(row[i], row[i-1], pair[i])
		}
	}
	for i := range quad { // four rows: column 0 | 4, 1 | 5, 2 | 6, 3 | 7 of rows 0 to 3, then of rows 4 to 7
		quad[i] = YMM()
		base := i &^ 3
		lo, hi := pair[base+i%4/2], pair[base+2+i%4/2]
		if i%2 == 0 {
			VSHUFPS(Imm(0x44), hi, lo, quad[i])
		} else {
			VSHUFPS(Imm(0xee), hi, lo, quad[i])
		}
	}
	for i := range 8 {
		y, half := YMM(), Imm(0x20)
		if i >= 4 {
			half = Imm(0x31)
		}
		VPERM2F128(half, quad[4+i%4], quad[i%4], y)
		VMOVUPS(y, out.at(i, 0))
	}
	in.move(Imm(32))
	out.move(step)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// gather copies n rows of 16 floats from where they are apart to where others do.
func gather() {
	TEXT("gather256", NOSPLIT, "func(dst *float32, to int, src *float32, from int, n int)")
	Pragma("noescape")
	Doc("gather256 packs n rows of 16 consecutive floats.")
	dst, to, src, from := Load(Param("dst"), GP64()), floats("to"), Load(Param("src"), GP64()), floats("from")
	n := Load(Param("n"), GP64())
	Label("row")
	for h := range 2 {
		y := YMM()
		VMOVUPS(Mem{Base: src, Disp: 32 * h}, y)
		VMOVUPS(y, Mem{Base: dst, Disp: 32 * h})
	}
	ADDQ(from, src)
	ADDQ(to, dst)
	DECQ(n)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// decode looks 16 codes at a time up in two registers of 8 levels each; the code's highest bit chooses between them.
func decode() {
	TEXT("decode256", NOSPLIT, "func(dst *float32, to int, codes *byte, n int, scale float32)")
	Pragma("noescape")
	Doc("decode256 writes the values of n codes that share a scale, n a multiple of 16, 16 at a time.")
	low, high := levels()
	scale, nibble := YMM(), XMM()
	addr, err := Param("scale").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(addr.Addr, scale)
	fifteen := GP32()
	MOVL(U32(0x0f0f0f0f), fifteen)
	VMOVD(fifteen, nibble)
	VPBROADCASTD(nibble, nibble)
	dst, to := Load(Param("dst"), GP64()), floats("to")
	codes, n := Load(Param("codes"), GP64()), Load(Param("n"), GP64())
	Label("sixteen")
	odd, even, all := XMM(), XMM(), XMM()
	VMOVQ(Mem{Base: codes}, odd)
	VPSRLD(Imm(4), odd, even)
	VPAND(nibble, odd, odd)
	VPAND(nibble, even, even)
	VPUNPCKLBW(odd, even, all)
	for h := range 2 {
		index, lo, hi := YMM(), YMM(), YMM()
		VPMOVZXBD(all, index)
		VPERMPS(low, index, lo)
		VPERMPS(high, index, hi)
		VPSLLD(Imm(28), index, index)
		VBLENDVPS(index, hi, lo, lo)
		VMULPS(scale, lo, lo)
		VMOVUPS(lo, Mem{Base: dst, Disp: 32 * h})
		if h == 0 {
			VPSRLDQ(Imm(8), all, all)
		}
	}
	ADDQ(Imm(8), codes)
	ADDQ(to, dst)
	SUBQ(Imm(16), n)
	JNZ(LabelRef("sixteen"))
	VZEROUPPER()
	RET()
}

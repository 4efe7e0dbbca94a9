// Command nf4 writes the amd64 assembly of package nf4: 64 values at a time, bit-identical to the plain twins.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	encode()
	decode()
	Generate()
}

const infinity = 0x7f800000

func constants(name string, dwords ...uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, v := range dwords {
		DATA(4*i, U32(v))
	}
	return m
}

func encode() {
	unlane := constants("unlane", 0, 4, 1, 5, 2, 6, 3, 7) // undoes the lane-wise packing of four registers
	one := constants("one", 0x3f800000)
	pair := constants("pair", 0x01100110) // bytes 16, 1: a pair of codes becomes 16*first + second
	TEXT("encodeAVX2", NOSPLIT, "func(codes *byte, scales, x *float32, blocks int, bounds *float32) (done int)")
	Pragma("noescape")
	Doc("encodeAVX2 encodes blocks of 64 until it meets one whose scale has no",
		"reciprocal in float32 or that holds a value that is not finite, and returns",
		"how many it did.")
	codes, scales, x := Load(Param("codes"), GP64()), Load(Param("scales"), GP64()), Load(Param("x"), GP64())
	blocks, bounds := Load(Param("blocks"), GP64()), Load(Param("bounds"), GP64())
	done, notFinite := GP64(), GP32()
	XORQ(done, done)
	MOVL(U32(infinity), notFinite)
	// The 15 bounds, each spread over a register, lie in the frame.
	frame := AllocLocal(15 * 32)
	for i := range 15 {
		b := YMM()
		VBROADCASTSS(Mem{Base: bounds, Disp: 4 * i}, b)
		VMOVUPS(b, frame.Offset(32*i))
	}
	magnitude, pairs, order := YMM(), YMM(), YMM()
	VPCMPEQD(magnitude, magnitude, magnitude)
	VPSRLD(U8(1), magnitude, magnitude) // everything but the sign
	VPBROADCASTD(pair, pairs)
	VMOVDQU(unlane, order)

	Label("loop")
	var v [8]VecVirtual
	for i := range v {
		v[i] = YMM()
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, v[i])
	}
	// The largest magnitude, compared as integers so that a NaN is the largest.
	most, other := YMM(), YMM()
	VPAND(magnitude, v[0], most)
	for _, r := range v[1:] {
		VPAND(magnitude, r, other)
		VPMAXUD(other, most, most)
	}
	VEXTRACTI128(U8(1), most, other.AsX())
	VPMAXUD(other.AsX(), most.AsX(), most.AsX())
	for _, swap := range []uint8{0x4E, 0xB1} {
		VPSHUFD(U8(swap), most.AsX(), other.AsX())
		VPMAXUD(other.AsX(), most.AsX(), most.AsX())
	}
	bits, inverse := GP32(), XMM()
	VMOVD(most.AsX(), bits)
	CMPL(bits, notFinite)
	JGE(LabelRef("stop")) // not finite
	VMOVSS(one, inverse)
	VDIVSS(most.AsX(), inverse, inverse)
	inverseBits := GP32()
	VMOVD(inverse, inverseBits)
	CMPL(inverseBits, notFinite)
	JGE(LabelRef("stop")) // zero, or too small for a reciprocal
	MOVL(bits, Mem{Base: scales})
	scale := YMM()
	VBROADCASTSS(inverse, scale)

	// A code is how many of the bounds are below the value.
	for _, r := range v {
		VMULPS(scale, r, r)
		count, below := YMM(), YMM()
		VCMPPS(U8(14), frame, r, count)
		for i := 1; i < 15; i++ {
			VCMPPS(U8(14), frame.Offset(32*i), r, below)
			VPADDD(below, count, count)
		}
		VPABSD(count, r)
	}
	// Four registers of codes become 16 words of 16*first + second.
	for _, q := range [][]VecVirtual{v[:4], v[4:]} {
		VPACKSSDW(q[1], q[0], q[0])
		VPACKSSDW(q[3], q[2], q[2])
		VPACKUSWB(q[2], q[0], q[0])
		VPERMD(q[0], order, q[0])
		VPMADDUBSW(pairs, q[0], q[0])
	}
	VPACKUSWB(v[4], v[0], v[0])
	VPERMQ(U8(0xD8), v[0], v[0])
	VMOVDQU(v[0], Mem{Base: codes})
	ADDQ(I32(256), x)
	ADDQ(I32(32), codes)
	ADDQ(I32(4), scales)
	INCQ(done)
	CMPQ(done, blocks)
	JLT(LabelRef("loop"))
	Label("stop")
	Store(done, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

func decode() {
	nibble := constants("nibble", 4, 0, 12, 8, 20, 16, 28, 24) // right shifts that bring each lane's nibble down, high first
	TEXT("decodeAVX2", NOSPLIT, "func(dst *float32, codes *byte, scales *float32, blocks int, levels *float32)")
	Pragma("noescape")
	Doc("decodeAVX2 decodes blocks of 64, at least one.")
	dst, codes, scales := Load(Param("dst"), GP64()), Load(Param("codes"), GP64()), Load(Param("scales"), GP64())
	blocks, levels := Load(Param("blocks"), GP64()), Load(Param("levels"), GP64())
	low, high, shifts := YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: levels}, low)
	VMOVUPS(Mem{Base: levels, Disp: 32}, high)
	VMOVDQU(nibble, shifts)
	Label("loop")
	scale, scaledLow, scaledHigh := YMM(), YMM(), YMM()
	VBROADCASTSS(Mem{Base: scales}, scale)
	VMULPS(scale, low, scaledLow)   // levels of codes 0..7
	VMULPS(scale, high, scaledHigh) // levels of codes 8..15
	for i := range 8 {
		code, a, b := YMM(), YMM(), YMM()
		VPBROADCASTD(Mem{Base: codes, Disp: 4 * i}, code)
		VPSRLVD(shifts, code, code)
		VPERMPS(scaledLow, code, a)
		VPERMPS(scaledHigh, code, b)
		VPSLLD(U8(28), code, code)
		VBLENDVPS(code, b, a, a)
		VMOVUPS(a, Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(I32(256), dst)
	ADDQ(I32(32), codes)
	ADDQ(I32(4), scales)
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

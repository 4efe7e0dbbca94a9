//go:build !purego

#include "textflag.h"

// Order of dwords that undoes the lane-wise packing of four registers.
DATA unlane<>+0(SB)/8, $0x0000000400000000
DATA unlane<>+8(SB)/8, $0x0000000500000001
DATA unlane<>+16(SB)/8, $0x0000000600000002
DATA unlane<>+24(SB)/8, $0x0000000700000003
GLOBL unlane<>(SB), RODATA|NOPTR, $32

// Right shifts that bring the nibble of each lane to the bottom, high first.
DATA nibble<>+0(SB)/8, $0x0000000000000004
DATA nibble<>+8(SB)/8, $0x000000080000000c
DATA nibble<>+16(SB)/8, $0x0000001000000014
DATA nibble<>+24(SB)/8, $0x000000180000001c
GLOBL nibble<>(SB), RODATA|NOPTR, $32

DATA oneF<>+0(SB)/4, $0x3f800000
GLOBL oneF<>(SB), RODATA|NOPTR, $4

// Bytes 16, 1: a pair of codes becomes 16*first + second.
DATA pair<>+0(SB)/4, $0x01100110
GLOBL pair<>(SB), RODATA|NOPTR, $4

// COUNT adds 1 to the count in Y8 (as -1) in the lanes of r above a bound.
#define COUNT(r, bound) \
	VCMPPS $14, bound, r, Y9; \
	VPADDD Y9, Y8, Y8

// CODE turns the values in r into codes: how many of the 15 bounds lie below.
#define CODE(r) \
	VMULPS Y12, r, r; \
	VCMPPS $14, bounds-480(SP), r, Y8; \
	COUNT(r, bounds-448(SP)); \
	COUNT(r, bounds-416(SP)); \
	COUNT(r, bounds-384(SP)); \
	COUNT(r, bounds-352(SP)); \
	COUNT(r, bounds-320(SP)); \
	COUNT(r, bounds-288(SP)); \
	COUNT(r, bounds-256(SP)); \
	COUNT(r, bounds-224(SP)); \
	COUNT(r, bounds-192(SP)); \
	COUNT(r, bounds-160(SP)); \
	COUNT(r, bounds-128(SP)); \
	COUNT(r, bounds-96(SP)); \
	COUNT(r, bounds-64(SP)); \
	COUNT(r, bounds-32(SP)); \
	VPABSD Y8, r

// PAIRS packs the codes of four registers into 16 words of 16*first + second.
#define PAIRS(a, b, c, d) \
	VPACKSSDW  b, a, a; \
	VPACKSSDW  d, c, c; \
	VPACKUSWB  c, a, a; \
	VPERMD     a, Y13, a; \
	VPMADDUBSW Y14, a, a

// LEVELS looks up eight codes, four bytes at offset, in the scaled levels.
#define LEVELS(offset, t, lo, hi) \
	VPBROADCASTD offset(SI), t; \
	VPSRLVD      Y13, t, t; \
	VPERMPS      Y11, t, lo; \
	VPERMPS      Y10, t, hi; \
	VPSLLD       $28, t, t; \
	VBLENDVPS    t, hi, lo, lo; \
	VMOVUPS      lo, 8*offset(DI)

// func encodeAVX2(codes *byte, scales, x *float32, blocks int, bounds *float32) (done int)
//
// The frame holds the 15 bounds, each spread over a register.
TEXT ·encodeAVX2(SB), NOSPLIT, $480-48
	MOVQ codes+0(FP), DI
	MOVQ scales+8(FP), BX
	MOVQ x+16(FP), SI
	MOVQ blocks+24(FP), CX
	MOVQ bounds+32(FP), DX
	XORQ R8, R8

	VBROADCASTSS 0(DX), Y0
	VMOVUPS      Y0, bounds-480(SP)
	VBROADCASTSS 4(DX), Y0
	VMOVUPS      Y0, bounds-448(SP)
	VBROADCASTSS 8(DX), Y0
	VMOVUPS      Y0, bounds-416(SP)
	VBROADCASTSS 12(DX), Y0
	VMOVUPS      Y0, bounds-384(SP)
	VBROADCASTSS 16(DX), Y0
	VMOVUPS      Y0, bounds-352(SP)
	VBROADCASTSS 20(DX), Y0
	VMOVUPS      Y0, bounds-320(SP)
	VBROADCASTSS 24(DX), Y0
	VMOVUPS      Y0, bounds-288(SP)
	VBROADCASTSS 28(DX), Y0
	VMOVUPS      Y0, bounds-256(SP)
	VBROADCASTSS 32(DX), Y0
	VMOVUPS      Y0, bounds-224(SP)
	VBROADCASTSS 36(DX), Y0
	VMOVUPS      Y0, bounds-192(SP)
	VBROADCASTSS 40(DX), Y0
	VMOVUPS      Y0, bounds-160(SP)
	VBROADCASTSS 44(DX), Y0
	VMOVUPS      Y0, bounds-128(SP)
	VBROADCASTSS 48(DX), Y0
	VMOVUPS      Y0, bounds-96(SP)
	VBROADCASTSS 52(DX), Y0
	VMOVUPS      Y0, bounds-64(SP)
	VBROADCASTSS 56(DX), Y0
	VMOVUPS      Y0, bounds-32(SP)

	VPCMPEQD     Y15, Y15, Y15
	VPSRLD       $1, Y15, Y15    // everything but the sign
	VPBROADCASTD pair<>(SB), Y14
	VMOVDQU      unlane<>(SB), Y13
	MOVL         $0x7f800000, R10

loop:
	VMOVUPS 0(SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VMOVUPS 128(SI), Y4
	VMOVUPS 160(SI), Y5
	VMOVUPS 192(SI), Y6
	VMOVUPS 224(SI), Y7

	// The largest magnitude, compared as integers so that a NaN is the largest.
	VPAND   Y15, Y0, Y8
	VPAND   Y15, Y1, Y9
	VPMAXUD Y9, Y8, Y8
	VPAND   Y15, Y2, Y9
	VPMAXUD Y9, Y8, Y8
	VPAND   Y15, Y3, Y9
	VPMAXUD Y9, Y8, Y8
	VPAND   Y15, Y4, Y9
	VPMAXUD Y9, Y8, Y8
	VPAND   Y15, Y5, Y9
	VPMAXUD Y9, Y8, Y8
	VPAND   Y15, Y6, Y9
	VPMAXUD Y9, Y8, Y8
	VPAND   Y15, Y7, Y9
	VPMAXUD Y9, Y8, Y8
	VEXTRACTI128 $1, Y8, X9
	VPMAXUD      X9, X8, X8
	VPSHUFD      $0x4E, X8, X9
	VPMAXUD      X9, X8, X8
	VPSHUFD      $0xB1, X8, X9
	VPMAXUD      X9, X8, X8
	VMOVD        X8, R9
	CMPL         R9, R10
	JGE          stop            // not finite
	VMOVSS       oneF<>(SB), X9
	VDIVSS       X8, X9, X9
	VMOVD        X9, R11
	CMPL         R11, R10
	JGE          stop            // zero, or too small for a reciprocal
	MOVL         R9, (BX)
	VBROADCASTSS X9, Y12

	CODE(Y0)
	CODE(Y1)
	CODE(Y2)
	CODE(Y3)
	PAIRS(Y0, Y1, Y2, Y3)
	CODE(Y4)
	CODE(Y5)
	CODE(Y6)
	CODE(Y7)
	PAIRS(Y4, Y5, Y6, Y7)
	VPACKUSWB Y4, Y0, Y0
	VPERMQ    $0xD8, Y0, Y0
	VMOVDQU   Y0, (DI)
	ADDQ      $256, SI
	ADDQ      $32, DI
	ADDQ      $4, BX
	INCQ      R8
	CMPQ      R8, CX
	JLT       loop

stop:
	MOVQ R8, done+40(FP)
	VZEROUPPER
	RET

// func decodeAVX2(dst *float32, codes *byte, scales *float32, blocks int, levels *float32)
TEXT ·decodeAVX2(SB), NOSPLIT, $0-40
	MOVQ    dst+0(FP), DI
	MOVQ    codes+8(FP), SI
	MOVQ    scales+16(FP), BX
	MOVQ    blocks+24(FP), CX
	MOVQ    levels+32(FP), DX
	VMOVUPS (DX), Y15
	VMOVUPS 32(DX), Y14
	VMOVDQU nibble<>(SB), Y13

loop:
	VBROADCASTSS (BX), Y12
	VMULPS       Y12, Y15, Y11 // levels of codes 0..7
	VMULPS       Y12, Y14, Y10 // levels of codes 8..15

	LEVELS(0, Y0, Y1, Y2)
	LEVELS(4, Y3, Y4, Y5)
	LEVELS(8, Y6, Y7, Y8)
	LEVELS(12, Y0, Y1, Y2)
	LEVELS(16, Y3, Y4, Y5)
	LEVELS(20, Y6, Y7, Y8)
	LEVELS(24, Y0, Y1, Y2)
	LEVELS(28, Y3, Y4, Y5)
	ADDQ $256, DI
	ADDQ $32, SI
	ADDQ $4, BX
	DECQ CX
	JNZ  loop
	VZEROUPPER
	RET

//go:build !purego

#include "textflag.h"

// Sign bits that turn (x + swapped x) into a butterfly at distance 1, 2 and 4.
DATA negate1<>+0(SB)/8, $0x8000000000000000
DATA negate1<>+8(SB)/8, $0x8000000000000000
DATA negate1<>+16(SB)/8, $0x8000000000000000
DATA negate1<>+24(SB)/8, $0x8000000000000000
GLOBL negate1<>(SB), RODATA|NOPTR, $32

DATA negate2<>+0(SB)/8, $0
DATA negate2<>+8(SB)/8, $0x8000000080000000
DATA negate2<>+16(SB)/8, $0
DATA negate2<>+24(SB)/8, $0x8000000080000000
GLOBL negate2<>(SB), RODATA|NOPTR, $32

DATA negate4<>+0(SB)/8, $0
DATA negate4<>+8(SB)/8, $0
DATA negate4<>+16(SB)/8, $0x8000000080000000
DATA negate4<>+24(SB)/8, $0x8000000080000000
GLOBL negate4<>(SB), RODATA|NOPTR, $32

// Left shifts that bring bit 8k+lane of a dword to the sign position.

DATA signShift<>+0(SB)/8, $0x0000001e0000001f
DATA signShift<>+8(SB)/8, $0x0000001c0000001d
DATA signShift<>+16(SB)/8, $0x0000001a0000001b
DATA signShift<>+24(SB)/8, $0x0000001800000019
DATA signShift<>+32(SB)/8, $0x0000001600000017
DATA signShift<>+40(SB)/8, $0x0000001400000015
DATA signShift<>+48(SB)/8, $0x0000001200000013
DATA signShift<>+56(SB)/8, $0x0000001000000011
DATA signShift<>+64(SB)/8, $0x0000000e0000000f
DATA signShift<>+72(SB)/8, $0x0000000c0000000d
DATA signShift<>+80(SB)/8, $0x0000000a0000000b
DATA signShift<>+88(SB)/8, $0x0000000800000009
DATA signShift<>+96(SB)/8, $0x0000000600000007
DATA signShift<>+104(SB)/8, $0x0000000400000005
DATA signShift<>+112(SB)/8, $0x0000000200000003
DATA signShift<>+120(SB)/8, $0x0000000000000001
GLOBL signShift<>(SB), RODATA|NOPTR, $128

// SIGNED loads eight values at offset and negates those whose sign bit is set:
// shift brings their bits in Y14 to the top.
#define SIGNED(offset, shift, r) \
	VPSLLVD signShift<>+shift(SB), Y14, Y13; \
	VPAND   Y15, Y13, Y13; \
	VXORPS  offset(DI), Y13, r

// WITHIN does the levels at distance 1, 2 and 4: x + swapped x, where the upper
// of each pair is negated first.
#define WITHIN(r) \
	VPERMILPS  $0xB1, r, Y8; \
	VXORPS     negate1<>(SB), r, r; \
	VADDPS     Y8, r, r; \
	VPERMILPS  $0x4E, r, Y8; \
	VXORPS     negate2<>(SB), r, r; \
	VADDPS     Y8, r, r; \
	VPERM2F128 $0x01, r, r, Y8; \
	VXORPS     negate4<>(SB), r, r; \
	VADDPS     Y8, r, r

// func hadamard64(x *float32, signs *uint64, blocks int)
TEXT ·hadamard64(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ signs+8(FP), SI
	MOVQ blocks+16(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSLLD   $31, Y15, Y15 // the sign bit in each lane

loop:
	VPBROADCASTD 0(SI), Y14
	SIGNED(0, 0, Y0)
	SIGNED(32, 32, Y1)
	SIGNED(64, 64, Y2)
	SIGNED(96, 96, Y3)
	VPBROADCASTD 4(SI), Y14
	SIGNED(128, 0, Y4)
	SIGNED(160, 32, Y5)
	SIGNED(192, 64, Y6)
	SIGNED(224, 96, Y7)

	WITHIN(Y0)
	WITHIN(Y1)
	WITHIN(Y2)
	WITHIN(Y3)
	WITHIN(Y4)
	WITHIN(Y5)
	WITHIN(Y6)
	WITHIN(Y7)

	// distance 8, 16, 32: between registers
	VADDPS Y1, Y0, Y8
	VSUBPS Y1, Y0, Y1
	VADDPS Y3, Y2, Y9
	VSUBPS Y3, Y2, Y3
	VADDPS Y5, Y4, Y10
	VSUBPS Y5, Y4, Y5
	VADDPS Y7, Y6, Y11
	VSUBPS Y7, Y6, Y7
	VADDPS Y9, Y8, Y12
	VSUBPS Y9, Y8, Y9
	VADDPS Y3, Y1, Y0
	VSUBPS Y3, Y1, Y3
	VADDPS Y11, Y10, Y2
	VSUBPS Y11, Y10, Y11
	VADDPS Y7, Y5, Y4
	VSUBPS Y7, Y5, Y7
	VADDPS Y2, Y12, Y6
	VSUBPS Y2, Y12, Y2
	VADDPS Y4, Y0, Y8
	VSUBPS Y4, Y0, Y4
	VADDPS Y11, Y9, Y1
	VSUBPS Y11, Y9, Y11
	VADDPS Y7, Y3, Y10
	VSUBPS Y7, Y3, Y7
	VMOVUPS Y6, 0(DI)
	VMOVUPS Y8, 32(DI)
	VMOVUPS Y1, 64(DI)
	VMOVUPS Y10, 96(DI)
	VMOVUPS Y2, 128(DI)
	VMOVUPS Y4, 160(DI)
	VMOVUPS Y11, 192(DI)
	VMOVUPS Y7, 224(DI)
	ADDQ $256, DI
	ADDQ $8, SI
	DECQ CX
	JNZ  loop
	VZEROUPPER
	RET

// func hadamardRadix2(x *float32, n, h int)
TEXT ·hadamardRadix2(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ h+16(FP), DX
	SHLQ $2, CX
	ADDQ DI, CX            // end of x
	SHLQ $2, DX            // distance in bytes

outer:
	LEAQ (DI)(DX*1), BX    // end of the first part

inner:
	VMOVUPS (DI), Y0
	VMOVUPS (DI)(DX*1), Y1
	VADDPS Y1, Y0, Y8
	VSUBPS Y1, Y0, Y1
	VMOVUPS Y8, (DI)
	VMOVUPS Y1, (DI)(DX*1)
	ADDQ $32, DI
	CMPQ DI, BX
	JLT  inner
	ADDQ DX, DI            // skip the parts done
	CMPQ DI, CX
	JLT  outer
	VZEROUPPER
	RET

// func hadamardRadix4(x *float32, n, h int)
TEXT ·hadamardRadix4(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ h+16(FP), DX
	SHLQ $2, CX
	ADDQ DI, CX            // end of x
	SHLQ $2, DX            // distance in bytes
	LEAQ (DX)(DX*2), R8    // 3 distances

outer:
	LEAQ (DI)(DX*1), BX    // end of the first part

inner:
	VMOVUPS (DI), Y0
	VMOVUPS (DI)(DX*1), Y1
	VMOVUPS (DI)(DX*2), Y2
	VMOVUPS (DI)(R8*1), Y3
	VADDPS Y1, Y0, Y8
	VSUBPS Y1, Y0, Y1
	VADDPS Y3, Y2, Y9
	VSUBPS Y3, Y2, Y3
	VADDPS Y9, Y8, Y10
	VSUBPS Y9, Y8, Y9
	VADDPS Y3, Y1, Y11
	VSUBPS Y3, Y1, Y3
	VMOVUPS Y10, (DI)
	VMOVUPS Y11, (DI)(DX*1)
	VMOVUPS Y9, (DI)(DX*2)
	VMOVUPS Y3, (DI)(R8*1)
	ADDQ $32, DI
	CMPQ DI, BX
	JLT  inner
	ADDQ R8, DI            // skip the parts done
	CMPQ DI, CX
	JLT  outer
	VZEROUPPER
	RET

// func hadamardRadix8(x *float32, n, h int)
TEXT ·hadamardRadix8(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ h+16(FP), DX
	SHLQ $2, CX
	ADDQ DI, CX            // end of x
	SHLQ $2, DX            // distance in bytes
	LEAQ (DX)(DX*2), R8    // 3 distances
	LEAQ (DX)(DX*4), R9    // 5 distances
	LEAQ (R8)(DX*4), R10   // 7 distances

outer:
	LEAQ (DI)(DX*1), BX    // end of the first part

inner:
	VMOVUPS (DI), Y0
	VMOVUPS (DI)(DX*1), Y1
	VMOVUPS (DI)(DX*2), Y2
	VMOVUPS (DI)(R8*1), Y3
	VMOVUPS (DI)(DX*4), Y4
	VMOVUPS (DI)(R9*1), Y5
	VMOVUPS (DI)(R8*2), Y6
	VMOVUPS (DI)(R10*1), Y7
	VADDPS Y1, Y0, Y8
	VSUBPS Y1, Y0, Y1
	VADDPS Y3, Y2, Y9
	VSUBPS Y3, Y2, Y3
	VADDPS Y5, Y4, Y10
	VSUBPS Y5, Y4, Y5
	VADDPS Y7, Y6, Y11
	VSUBPS Y7, Y6, Y7
	VADDPS Y9, Y8, Y12
	VSUBPS Y9, Y8, Y9
	VADDPS Y3, Y1, Y0
	VSUBPS Y3, Y1, Y3
	VADDPS Y11, Y10, Y2
	VSUBPS Y11, Y10, Y11
	VADDPS Y7, Y5, Y4
	VSUBPS Y7, Y5, Y7
	VADDPS Y2, Y12, Y6
	VSUBPS Y2, Y12, Y2
	VADDPS Y4, Y0, Y8
	VSUBPS Y4, Y0, Y4
	VADDPS Y11, Y9, Y1
	VSUBPS Y11, Y9, Y11
	VADDPS Y7, Y3, Y10
	VSUBPS Y7, Y3, Y7
	VMOVUPS Y6, (DI)
	VMOVUPS Y8, (DI)(DX*1)
	VMOVUPS Y1, (DI)(DX*2)
	VMOVUPS Y10, (DI)(R8*1)
	VMOVUPS Y2, (DI)(DX*4)
	VMOVUPS Y4, (DI)(R9*1)
	VMOVUPS Y11, (DI)(R8*2)
	VMOVUPS Y7, (DI)(R10*1)
	ADDQ $32, DI
	CMPQ DI, BX
	JLT  inner
	ADDQ R10, DI            // skip the parts done
	CMPQ DI, CX
	JLT  outer
	VZEROUPPER
	RET

//go:build !purego

#include "textflag.h"

DATA one<>+0(SB)/4, $0x3f800000
GLOBL one<>(SB), RODATA|NOPTR, $4

// 1 - 2^-24
DATA nearOne<>+0(SB)/4, $0x3f7fffff
GLOBL nearOne<>(SB), RODATA|NOPTR, $4

// func roundUniformAVX2(dst *int32, y *float32, random *byte, n int, scale, limit float32) (norm2 int64)
TEXT ·roundUniformAVX2(SB), NOSPLIT, $0-48
	MOVQ         dst+0(FP), DI
	MOVQ         y+8(FP), SI
	MOVQ         random+16(FP), BX
	MOVQ         n+24(FP), CX
	VBROADCASTSS scale+32(FP), Y15
	VBROADCASTSS limit+36(FP), Y14
	VXORPS       Y13, Y13, Y13
	VSUBPS       Y14, Y13, Y13 // -limit
	VBROADCASTSS one<>(SB), Y12
	VBROADCASTSS nearOne<>(SB), Y11
	VPXOR        Y10, Y10, Y10 // sum of squares, four int64

loop:
	VMULPS     (SI), Y15, Y0
	VMAXPS     Y13, Y0, Y0
	VMINPS     Y14, Y0, Y0
	VROUNDPS   $9, Y0, Y1      // floor
	VSUBPS     Y1, Y0, Y2      // distance from the lower symbol
	VMOVDQU    (BX), Y3
	VPSRLD     $9, Y3, Y3
	VPOR       Y12, Y3, Y3
	VSUBPS     Y11, Y3, Y3     // uniform in (0, 1)
	VCMPPS     $1, Y2, Y3, Y3  // uniform < distance
	VCVTTPS2DQ Y1, Y1
	VPSUBD     Y3, Y1, Y1
	VMOVDQU    Y1, (DI)
	VPMULDQ    Y1, Y1, Y2
	VPADDQ     Y2, Y10, Y10
	VPSRLQ     $32, Y1, Y1
	VPMULDQ    Y1, Y1, Y1
	VPADDQ     Y1, Y10, Y10
	ADDQ       $32, SI
	ADDQ       $32, BX
	ADDQ       $32, DI
	SUBQ       $8, CX
	JNZ        loop

	VEXTRACTI128 $1, Y10, X0
	VPADDQ       X0, X10, X10
	VPSRLDQ      $8, X10, X0
	VPADDQ       X0, X10, X10
	VMOVQ        X10, AX
	MOVQ         AX, norm2+40(FP)
	VZEROUPPER
	RET

// func roundCellsAVX2(dst *int32, y *float32, random *byte, n int, scale, limit float32, table *int32) (norm2 int64)
TEXT ·roundCellsAVX2(SB), NOSPLIT, $0-56
	MOVQ         dst+0(FP), DI
	MOVQ         y+8(FP), SI
	MOVQ         random+16(FP), BX
	MOVQ         n+24(FP), CX
	VBROADCASTSS scale+32(FP), Y15
	VBROADCASTSS limit+36(FP), Y14
	VXORPS       Y13, Y13, Y13
	VSUBPS       Y14, Y13, Y13 // -limit
	VBROADCASTSS one<>(SB), Y12
	VBROADCASTSS nearOne<>(SB), Y11
	VPXOR        Y10, Y10, Y10 // sum of squares, four int64
	MOVQ         table+40(FP), DX
	VCVTTPS2DQ   Y14, Y9       // limit as integer

loop:
	VMULPS     (SI), Y15, Y0
	VMAXPS     Y13, Y0, Y0
	VMINPS     Y14, Y0, Y0
	VROUNDPS   $9, Y0, Y1      // floor
	VCVTTPS2DQ Y1, Y1
	VPADDD     Y9, Y1, Y1      // index of the cell
	VPCMPEQD   Y8, Y8, Y8
	VPGATHERDD Y8, (DX)(Y1*4), Y2
	VPSRAD     $16, Y2, Y3     // width
	VPSLLD     $16, Y2, Y2
	VPSRAD     $16, Y2, Y2     // lower symbol
	VCVTDQ2PS  Y2, Y4
	VSUBPS     Y4, Y0, Y0      // distance from the lower symbol
	VCVTDQ2PS  Y3, Y4
	VMOVDQU    (BX), Y5
	VPSRLD     $9, Y5, Y5
	VPOR       Y12, Y5, Y5
	VSUBPS     Y11, Y5, Y5     // uniform in (0, 1)
	VMULPS     Y4, Y5, Y5
	VCMPPS     $1, Y0, Y5, Y5  // uniform * width < distance
	VPAND      Y3, Y5, Y5
	VPADDD     Y5, Y2, Y1
	VMOVDQU    Y1, (DI)
	VPMULDQ    Y1, Y1, Y2
	VPADDQ     Y2, Y10, Y10
	VPSRLQ     $32, Y1, Y1
	VPMULDQ    Y1, Y1, Y1
	VPADDQ     Y1, Y10, Y10
	ADDQ       $32, SI
	ADDQ       $32, BX
	ADDQ       $32, DI
	SUBQ       $8, CX
	JNZ        loop

	VEXTRACTI128 $1, Y10, X0
	VPADDQ       X0, X10, X10
	VPSRLDQ      $8, X10, X0
	VPADDQ       X0, X10, X10
	VMOVQ        X10, AX
	MOVQ         AX, norm2+48(FP)
	VZEROUPPER
	RET

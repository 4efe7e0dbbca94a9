//go:build !purego

package quant

import "golang.org/x/sys/cpu"

//go:generate go run ./asm -out hadamard_amd64.s -stubs hadamard_amd64.go -pkg quant

// useAVX2 selects the assembly. Each routine has a plain twin that computes
// the same bits; simd_test.go holds the two together.
var useAVX2 = cpu.X86.HasAVX2

// roundUniformAVX2 is roundUniform for n values, a multiple of 8.
//
//go:noescape
func roundUniformAVX2(dst *int32, y *float32, random *byte, n int, scale, limit float32) (norm2 int64)

// roundCellsAVX2 is roundCells for n values, a multiple of 8. Entry i of table
// has the lower symbol in its low and the width in its high 16 bits.
//
//go:noescape
func roundCellsAVX2(dst *int32, y *float32, random *byte, n int, scale, limit float32, table *int32) (norm2 int64)

func hadamardFast(x []float32, r int, signs []uint64) bool {
	if !useAVX2 || len(x) == 0 {
		return false
	}
	hadamard64(&x[0], &signs[0], len(x)/64)
	for h := 64; h < r; {
		switch {
		case 8*h <= r:
			hadamardRadix8(&x[0], len(x), h)
			h *= 8
		case 4*h <= r:
			hadamardRadix4(&x[0], len(x), h)
			h *= 4
		default:
			hadamardRadix2(&x[0], len(x), h)
			h *= 2
		}
	}
	return true
}

func roundUniformFast(dst []int32, y []float32, random []byte, scale float32, q int32) (done int, norm2 int64) {
	n := len(dst) &^ 7
	if !useAVX2 || n == 0 {
		return 0, 0
	}
	return n, roundUniformAVX2(&dst[0], &y[0], &random[0], n, scale, float32(q))
}

func roundCellsFast(dst []int32, y []float32, random []byte, scale float32, q int32, table []int32) (done int, norm2 int64) {
	n := len(dst) &^ 7
	if !useAVX2 || n == 0 {
		return 0, 0
	}
	return n, roundCellsAVX2(&dst[0], &y[0], &random[0], n, scale, float32(q), &table[0])
}

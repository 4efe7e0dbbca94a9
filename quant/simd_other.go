//go:build !amd64 || purego

package quant

// Platforms without assembly take the plain twins everywhere.
const useAVX2 = false

func hadamardFast(x []float32, r int, signs []uint64) bool { return false }

func roundUniformFast(dst []int32, y []float32, random []byte, scale float32, q int32) (done int, norm2 int64) {
	return 0, 0
}

func roundCellsFast(dst []int32, y []float32, random []byte, scale float32, q int32, table []int32) (done int, norm2 int64) {
	return 0, 0
}

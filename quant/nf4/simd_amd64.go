//go:build !purego

package nf4

import "golang.org/x/sys/cpu"

//go:generate go run -C ../../lab ./assembly/nf4 -out ../quant/nf4/avx2_amd64.s -stubs ../quant/nf4/avx2_amd64.go -pkg nf4

// fast selects the assembly. Each routine has a plain twin that computes the
// same bits; simd_test.go holds the two together.
var fast = cpu.X86.HasAVX2

// encodeFast encodes a run of whole blocks of 64 from the front.
func encodeFast(codes []byte, scales, x []float32) (done int) {
	if n := len(x) / Block; fast && n > 0 {
		done = encodeAVX2(&codes[0], &scales[0], &x[0], n, &bounds[0])
	}
	return done
}

func decodeFast(dst []float32, codes []byte, scales []float32, levels *[16]float32) (done int) {
	n := len(dst) / Block
	if fast && n > 0 {
		decodeAVX2(&dst[0], &codes[0], &scales[0], n, &levels[0])
		return n
	}
	return 0
}

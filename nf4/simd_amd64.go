//go:build !purego

package nf4

import "golang.org/x/sys/cpu"

// fast selects the assembly. Each routine has a plain twin that computes the
// same bits; simd_test.go holds the two together.
var fast = cpu.X86.HasAVX2

// encodeAVX2 encodes blocks of 64 until it meets one whose scale has no
// reciprocal in float32 or that holds a value that is not finite, and returns
// how many it did.
//
//go:noescape
func encodeAVX2(codes *byte, scales, x *float32, blocks int, bounds *float32) (done int)

//go:noescape
func decodeAVX2(dst *float32, codes *byte, scales *float32, blocks int, levels *float32)

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

// Package l2 computes the Euclidean norm that clips and bounds updates and compares means.
// It is the only one, so that no two places differ in the last bit.
package l2

import "math"

// Norm is the norm of x, summed in float64: squares of float32 values neither
// overflow nor underflow there. It is not finite if and only if a value is not.
// Four sums hide the latency of addition.
func Norm(x []float32) float64 {
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b, c, d := float64(x[i]), float64(x[i+1]), float64(x[i+2]), float64(x[i+3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
	}
	for ; i < len(x); i++ {
		a := float64(x[i])
		s0 += a * a
	}
	return math.Sqrt((s0 + s1) + (s2 + s3))
}

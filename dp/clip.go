package dp

import (
	"errors"
	"fmt"
	"math"
)

// ErrNotFinite reports a NaN or an infinity where a number is needed.
var ErrNotFinite = errors.New("not a finite number")

// clipSlack keeps the clipped norm below the bound by more than any later
// rounding of a float64 sum of squares can add.
const clipSlack = 1 - 1.0/(1<<20)

// Clip scales x in place so that its L2 norm, accumulated in float64, is at
// most norm*(1-2^-20), and returns the norm before. A vector inside the bound
// is left as it is. A NaN or an infinity in x is ErrNotFinite, and x is then
// unchanged; norm must be finite and positive.
//
// Clip takes the whole update at once. Clipping parts of it by the same norm
// multiplies the sensitivity by the square root of their number.
func Clip(x []float32, norm float64) (before float64, err error) {
	if !(norm > 0) || math.IsInf(norm, 1) {
		return 0, fmt.Errorf("dp: clip norm %v, want finite and positive", norm)
	}
	before = l2(x)
	if math.IsNaN(before) || math.IsInf(before, 0) {
		for i, v := range x {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return 0, fmt.Errorf("dp: clip: element %d of %d is %v: %w", i, len(x), v, ErrNotFinite)
			}
		}
	}
	limit := norm * clipSlack
	if before <= limit {
		return before, nil
	}
	// Rounding to float32 can lift the norm by 2^-24; among subnormals by more.
	// What was written is measured, and shrunk again if it is above.
	for after, target := before, limit; after > limit; target *= 1 - 1.0/(1<<22) {
		if target < limit*0.999 || target == 0 {
			clear(x) // only for norms near the smallest subnormal
			return before, nil
		}
		scale := target / after
		for i, v := range x {
			x[i] = float32(float64(v) * scale)
		}
		after = l2(x)
	}
	return before, nil
}

// l2 is the norm in float64. Squares of float32 values neither overflow nor
// underflow in float64, so no scaling is needed. Four sums hide the latency.
func l2(x []float32) float64 {
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

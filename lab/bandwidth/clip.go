package bandwidth

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/internal/l2"
)

// errNotFinite reports a NaN or an infinity where a number is needed.
var errNotFinite = errors.New("not a finite number")

// clipSlack keeps the clipped norm below the bound by more than any later
// rounding of a float64 sum of squares can add.
const clipSlack = 1 - 1.0/(1<<20)

// clip scales x in place so that its L2 norm, accumulated in float64, is at
// most norm*(1-2^-20), and returns the norm before. A vector inside the bound
// is left as it is. A NaN or an infinity in x is errNotFinite, and x is then
// unchanged; norm must be finite and positive.
//
// clip takes the whole update at once. Clipping parts of it by the same norm
// multiplies the sensitivity by the square root of their number.
func clip(x []float32, norm float64) (before float64, err error) {
	if !(norm > 0) || math.IsInf(norm, 1) {
		return 0, fmt.Errorf("bandwidth: clip norm %v, want finite and positive", norm)
	}
	before = l2.Norm(x)
	if math.IsNaN(before) || math.IsInf(before, 0) {
		for i, v := range x {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return 0, fmt.Errorf("bandwidth: clip: element %d of %d is %v: %w", i, len(x), v, errNotFinite)
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
		after = l2.Norm(x)
	}
	return before, nil
}

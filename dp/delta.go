package dp

import (
	"errors"
	"fmt"
	"math"
)

// ErrDelta reports a delta that is out of range.
var ErrDelta = errors.New("delta out of range")

// DefaultDelta returns min(1e-6, n^-1.1) for a population of n members.
func DefaultDelta(n int) float64 {
	return min(1e-6, math.Pow(float64(max(n, 1)), -1.1))
}

// CheckDelta refuses a delta above 1/n, for publishing one member of n outright
// satisfies it, and returns a warning where delta is 1/n. n below 1 skips the
// comparison (population unknown); delta must be in (0, 1) always.
func CheckDelta(delta float64, n int) (warning string, err error) {
	if !(delta > 0 && delta < 1) {
		return "", fmt.Errorf("dp: delta %v, want in (0, 1): %w", delta, ErrDelta)
	}
	if n < 1 {
		return "", nil
	}
	limit := 1 / float64(n)
	switch {
	case delta > limit:
		return "", fmt.Errorf("dp: delta %v is above 1/%d: publishing one member in full would satisfy it: %w", delta, n, ErrDelta)
	case delta == limit:
		return fmt.Sprintf("delta %v equals 1/%d: it allows one member in expectation to be published; use %.3g or less", delta, n, DefaultDelta(n)), nil
	}
	return "", nil
}

// CohortFloorFailure bounds from above the chance that in any of rounds rounds
// the cohort, Binomial(population, q), is below floor. A job is to be refused
// where that exceeds delta/100 (union bound over the rounds).
func CohortFloorFailure(population int, q float64, floor, rounds int) float64 {
	if floor <= 0 || rounds <= 0 {
		return 0
	}
	if !(q > 0) || population < floor {
		return 1
	}
	if q >= 1 {
		return 0
	}
	tail := binomialBelow(population, q, floor) * (1 + 1e-12*float64(population) + 1e-9) // lgamma's rounding, relative
	return min(1, tail*float64(rounds))
}

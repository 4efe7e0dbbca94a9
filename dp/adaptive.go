package dp

import (
	"fmt"
	"math"
)

// AdaptiveClip moves the clip norm of the next round towards a quantile of the
// devices' update norms (Andrew et al. 2021). Each device reports one bit, whether
// its norm was within the clip norm, as an extra coordinate of its masked
// vector; only the noisy count is ever known. The bit's cost is part of the same
// release: see [SplitNoise] and [CountCode].
type AdaptiveClip struct {
	Quantile float64 // gamma in (0, 1), of the norms that shall not be clipped; 0.5 in the paper
	Rate     float64 // eta > 0 of the geometric update; 0.2 in the paper
	Min, Max float64 // the norm stays between these, 0 < Min <= Max
}

// Check validates the constants.
func (a AdaptiveClip) Check() error {
	if !(a.Quantile > 0 && a.Quantile < 1) {
		return fmt.Errorf("dp: adaptive clip quantile %v, want in (0, 1)", a.Quantile)
	}
	if !(a.Rate > 0) || math.IsInf(a.Rate, 1) {
		return fmt.Errorf("dp: adaptive clip rate %v, want finite and positive", a.Rate)
	}
	if !(a.Min > 0 && a.Min <= a.Max) || math.IsInf(a.Max, 1) {
		return fmt.Errorf("dp: adaptive clip range [%v, %v], want 0 < min <= max, finite", a.Min, a.Max)
	}
	return nil
}

// Next returns the clip norm after a round: c*exp(-eta*(b - gamma)), where b =
// count/expected + 1/2 estimates the unclipped fraction. count is the noisy sum of
// (bit - 1/2), an absent device counting 0; expected is the job's constant
// denominator, never the number of devices that answered.
func (a AdaptiveClip) Next(c, count, expected float64) (float64, error) {
	if err := a.Check(); err != nil {
		return 0, err
	}
	if !(c > 0) || math.IsInf(c, 1) || math.IsNaN(count) || math.IsInf(count, 0) || !(expected > 0) {
		return 0, fmt.Errorf("dp: adaptive clip of norm %v, count %v over %v: want finite, norm and denominator positive", c, count, expected)
	}
	// Noise may carry b outside of [0, 1], and it is taken as it comes, as in the
	// paper: cutting it would cut more on one side, and the norm would run away from
	// every quantile but the median.
	step := count/expected + 0.5 - a.Quantile
	return min(max(c*math.Exp(-a.Rate*step), a.Min), a.Max), nil
}

// SplitNoise returns the noise multiplier of the update's part when a total of
// z is shared with the count of clipped bits under noise of standard deviation
// sigmaB (in devices): (z^-2 - (2*sigmaB)^-2)^(-1/2), Andrew et al. 2021, theorem 1. A bit
// shifted to +-1/2 has sensitivity 1/2. sigmaB must exceed z/2.
func SplitNoise(z, sigmaB float64) (zDelta float64, err error) {
	if !(z > 0) || math.IsInf(z, 1) {
		return 0, fmt.Errorf("dp: noise multiplier %v, want finite and positive", z)
	}
	if !(2*sigmaB > z) {
		return 0, fmt.Errorf("dp: count noise %v must exceed half the noise multiplier %v: nothing would be left for the update", sigmaB, z)
	}
	if math.IsInf(sigmaB, 1) {
		return z, nil
	}
	r := z / (2 * sigmaB)
	return z / math.Sqrt((1-r)*(1+r)), nil
}

// CountCode places the clipping bits on the integer lattice, behind a vector's symbols, so that one
// draw of noise covers all coordinates. A contributor sends +Symbol in each of Coordinates extra
// coordinates if its norm was within the clip norm, and -Symbol if it was not; an absent one sends
// nothing. The zero value is no count.
//
// The squared sensitivity of the whole vector becomes b2 + B2(), its noise sigma^2 = z^2*(b2 +
// B2()); the noise multiplier of the update alone is then sigma/sqrt(b2), as SplitNoise says.
type CountCode struct {
	Coordinates int   // m
	Symbol      int32 // s, at least 1 if there are coordinates
}

// MaxCountCoordinates bounds CountCode.Coordinates.
const MaxCountCoordinates = 1 << 20

// NewCountCode returns the code with the fewest coordinates, and then the
// smallest symbol of at most maxSymbol, for which the decoded count has noise of
// standard deviation at most sigmaB: sigma/(2*sqrt(B2())) <= sigmaB. b2 is the
// squared sensitivity of the symbols before the count, z the noise multiplier of
// both together. sigmaB must exceed z/2.
func NewCountCode(b2 int64, maxSymbol int32, z, sigmaB float64) (CountCode, error) {
	if b2 <= 0 || maxSymbol < 1 {
		return CountCode{}, fmt.Errorf("dp: squared sensitivity %d and largest symbol %d, want both positive", b2, maxSymbol)
	}
	if _, err := SplitNoise(z, sigmaB); err != nil {
		return CountCode{}, err
	}
	// sigma/(2*sqrt(w)) <= sigmaB  <=>  w >= z^2*b2/(4*sigmaB^2 - z^2)
	w := z * z * float64(b2) / ((2*sigmaB - z) * (2*sigmaB + z)) * (1 + 0x1p-50)
	q := float64(maxSymbol)
	m := max(1, math.Ceil(w/(q*q)))
	if !(m <= MaxCountCoordinates) {
		return CountCode{}, fmt.Errorf("dp: count noise %v needs %.4g extra coordinates, limit %d: take more count noise", sigmaB, m, MaxCountCoordinates)
	}
	s := min(max(1, math.Ceil(math.Sqrt(w/m))), q)
	for m*s*s < w { // rounding
		m++
	}
	return CountCode{Coordinates: int(m), Symbol: int32(s)}, nil
}

// B2 is the squared norm of one contribution to the count.
func (c CountCode) B2() int64 { return int64(c.Coordinates) * int64(c.Symbol) * int64(c.Symbol) }

// Encode writes one contribution to dst, which has Coordinates elements.
func (c CountCode) Encode(dst []int32, within bool) {
	s := c.Symbol
	if !within {
		s = -s
	}
	for i := range dst[:c.Coordinates] {
		dst[i] = s
	}
}

// Decode returns the sum over all contributions of (bit - 1/2) from the sum of
// their coordinates, noisy or not; 0 without a count.
func (c CountCode) Decode(sum []int64) float64 {
	if c.Coordinates == 0 {
		return 0
	}
	total := 0.0
	for _, v := range sum[:c.Coordinates] {
		total += float64(v)
	}
	return total / (2 * float64(c.Coordinates) * float64(c.Symbol))
}

package dp

import (
	"fmt"
	"math"
	"math/bits"
)

// AdaptiveClip moves the clip norm of the next round towards a quantile of the
// devices' update norms (Andrew et al. 2021). Each device reports one bit, whether
// its norm was within the clip norm, as an extra coordinate of its masked
// vector; only the noisy count is ever known. The bit's cost is part of the same
// release: see [SplitNoise] and [CountWeight].
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
	// Noise may carry b outside of [0, 1]; what it says is no more than the end.
	b := min(max(count/expected+0.5, 0), 1)
	return min(max(c*math.Exp(-a.Rate*(b-a.Quantile)), a.Min), a.Max), nil
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

// CountWeight lays the same split out on the integer lattice, where one noise
// draw covers all coordinates. The bit is sent as +-s in m extra coordinates (0 when
// absent), m*s*s at least the returned w2; the vector's squared sensitivity becomes
// b2 + m*s*s, the noise sigma^2 = z^2*(b2 + m*s*s), and the noise of the decoded
// count (sum of the extra coordinates over 2*m*s) has a standard deviation of at
// most sigmaB. The update's own noise multiplier is then sigma/sqrt(b2), as SplitNoise
// says.
func CountWeight(b2 int64, z, sigmaB float64) (w2 int64, err error) {
	if b2 <= 0 {
		return 0, fmt.Errorf("dp: squared sensitivity %d, want positive", b2)
	}
	if _, err := SplitNoise(z, sigmaB); err != nil {
		return 0, err
	}
	// sigma/(2*sqrt(w2)) <= sigmaB  <=>  w2 >= z^2*b2/(4*sigmaB^2 - z^2)
	w := z * z * float64(b2) / ((2*sigmaB - z) * (2*sigmaB + z)) * (1 + 0x1p-50)
	if !(w < 1<<62) {
		return 0, fmt.Errorf("dp: count weight %v overflows; take more count noise than %v", w, sigmaB)
	}
	return max(1, int64(math.Ceil(w))), nil
}

// GroupBound is the largest absolute value of a masked sum of a shard whose
// devices each add up to providers vectors of symbols in -q..q: shard*providers*q. The
// ring must hold 2*GroupBound + 1 values. Overflow is an error.
func GroupBound(shard, providers int, q int64) (int64, error) {
	if shard < 1 || providers < 1 || q < 1 {
		return 0, fmt.Errorf("dp: shard %d, providers %d, symbol bound %d: want all at least 1", shard, providers, q)
	}
	hi, n := bits.Mul64(uint64(shard), uint64(providers))
	hi2, n := bits.Mul64(n, uint64(q))
	if hi != 0 || hi2 != 0 || n > math.MaxInt64/2 {
		return 0, fmt.Errorf("dp: shard %d of %d providers with symbols up to %d overflows 64 bits", shard, providers, q)
	}
	return int64(n), nil
}

package dp

import (
	"errors"
	"fmt"
	"math"
	"math/big"
)

// ErrNoBound is what Compose, and with it accounting.UntrustedEpsilon, returns if devices added no noise of their own: then nothing
// holds without trust in the coordinator.
var ErrNoBound = errors.New("devices added no noise of their own: no epsilon holds without trust in the coordinator")

// OwnNoise is noise that devices add themselves: each adds an independent discrete Gaussian to
// every coordinate of its integer vector before the vector is masked. The noise of honest devices
// is therefore in every sum that anybody sees, whatever the coordinator does. The zero value is no
// own noise.
//
// An absent device adds no noise either. Guarantees that rest on own noise therefore compare a
// device that contributes with the same device sending zeros and its noise.
type OwnNoise struct {
	// Multiplier is v: the standard deviation of each device's noise divided by the norm bound of
	// its vector. Each device draws variance NewVariance(v, B2, 1).
	Multiplier float64 `json:"multiplier"`
	// Honest is the least number of honest devices whose noise is in the release.
	Honest uint32 `json:"honest"`
	// Apart is the number of honest devices in the smallest sum that the coordinator sees: a
	// shard's.
	Apart uint32 `json:"apart"`
	// Seen reports whether the amount of noise in a release shows how many devices are in it, and
	// so how a device's coin fell. If false, the coordinator makes that number the same in all
	// rounds: see [ReleaseSpec.Shares].
	Seen bool `json:"seen,omitempty"`
}

// MinOwnSigma is the smallest standard deviation, in grid units, of noise that a device adds
// itself. From there on a sum of discrete Gaussians is as good as one: see SumRatio.
const MinOwnSigma = 2

// Variance is the variance of the noise that each device draws, for vectors of squared norm b2.
func (o OwnNoise) Variance(b2 int64) (Variance, error) {
	v, err := NewVariance(o.Multiplier, b2, 1)
	if err != nil {
		return Variance{}, fmt.Errorf("dp: own noise: %w", err)
	}
	if sigma := math.Sqrt(v.Float()); sigma < MinOwnSigma {
		return Variance{}, fmt.Errorf("dp: own noise has a standard deviation of %.3g grid units, must be at least %d: %w", sigma, MinOwnSigma, ErrVariance)
	}
	return v, nil
}

// Times is the variance of the sum of n independent draws.
func (v Variance) Times(n uint64) (Variance, error) {
	num := new(big.Int).Mul(v.num(), new(big.Int).SetUint64(n))
	out := Variance{Shift: v.Shift}
	for out.Shift > 0 && num.Sign() > 0 && num.Bit(0) == 0 {
		num.Rsh(num, 1)
		out.Shift--
	}
	if num.BitLen() > 128 {
		return Variance{}, fmt.Errorf("dp: %d times sigma^2 = %v: %w", n, v.Float(), ErrVariance)
	}
	out.Lo = new(big.Int).And(num, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	out.Hi = new(big.Int).Rsh(num, 64).Uint64()
	return out, out.check()
}

// less reports whether v is below w, exactly.
func (v Variance) less(w Variance) bool {
	a := new(big.Int).Mul(v.num(), w.den())
	return a.Cmp(new(big.Int).Mul(w.num(), v.den())) < 0
}

// SumRatio bounds, for a number n of discrete Gaussians of parameter sigma2 (at least
// 1/4), how far the logarithm of any probability of their sum is from that of the discrete
// Gaussian of parameter n*sigma2: Kairouz, Liu, Steinke 2021, theorem 1, tau.
func SumRatio(sigma2 float64, n int) float64 {
	sum := 0.0
	for k := 1; k < n; k++ {
		sum += math.Exp(-2 * math.Pi * math.Pi * sigma2 * float64(k) / float64(k+1))
	}
	return 10 * sum * (1 + 1e-9)
}

// sumRatio is SumRatio for whatever number of devices below 2^32 that a round can have, and
// for what a coordinator adds in the place of others, a single draw of at least the
// parameter of one: their sum joins it by one term more, of k = 1 at most.
func sumRatio(sigma2 float64) float64 {
	const some = 64
	term := func(k float64) float64 { return math.Exp(-2 * math.Pi * math.Pi * sigma2 * k / (k + 1)) }
	return SumRatio(sigma2, some) + 10*(term(1)+0x1p32*term(some))
}

// check checks an event's own noise against what the event says of the whole.
func (o OwnNoise) check(e Event) error {
	if o == (OwnNoise{}) {
		return nil
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("dp: event of round %d: %w: %w", e.Round, fmt.Errorf(format, args...), ErrEvent)
	}
	if !(o.Multiplier > 0) || math.IsInf(o.Multiplier, 1) || o.Honest == 0 || o.Apart == 0 {
		return bad("own noise %v of %d devices, %d apart, want all positive", o.Multiplier, o.Honest, o.Apart)
	}
	if o.Seen && (e.SamplingRate == 1 || e.ProviderRate != 0) {
		return bad("own noise would show a coin that is not a device's")
	}
	if e.B2 == 0 {
		const rounding = 1 + 1e-9
		if have := o.Multiplier * math.Sqrt(float64(o.Honest)) * rounding; have < e.NoiseMultiplier*e.NoiseScale {
			return bad("own noise %v of %d devices is %v, less than noise multiplier %v", o.Multiplier, o.Honest, have, e.NoiseMultiplier*e.NoiseScale)
		}
		return nil
	}
	one, err := o.Variance(e.B2)
	if err != nil {
		return bad("%w", err)
	}
	all, err := one.Times(uint64(o.Honest))
	if err != nil {
		return bad("%w", err)
	}
	if all.less(e.Sigma2) {
		return bad("own noise of %d devices has sigma^2 %s, less than %s", o.Honest, all, e.Sigma2)
	}
	return nil
}

// apart is an event as it is for a coordinator that adds no noise, flips no coin and looks
// at the sums of shards: a device that it takes in every round has the noise of the honest
// devices of its shard, and nothing else. The coins of providers, which devices flip, stay.
func (e Event) apart() (Event, error) {
	o := e.Own
	if o == (OwnNoise{}) {
		return Event{}, ErrNoBound
	}
	e.SamplingRate, e.NoiseScale, e.SimulatedRate, e.Hit, e.SimulatedHit, e.Coalition, e.Hidden = 1, 1, 0, 0, 0, Coalition{}, false
	e.NoiseMultiplier = o.Multiplier * math.Sqrt(float64(o.Apart)) * (1 - 0x1p-50)
	e.Own.Honest, e.Own.Seen = o.Apart, false
	if e.B2 == 0 {
		return e, nil
	}
	var err error
	e.Sigma2, err = NewVariance(e.NoiseMultiplier, e.B2, 1)
	return e, err
}

// AddOwn adds a device's own noise of variance v to its vector, before the vector is masked. On an
// error sum is cleared, so that no vector without noise survives.
func AddOwn(sum []int32, v Variance, noise Noise) error {
	some := make([]int64, min(len(sum), 4096))
	defer clear(some)
	for at := 0; at < len(sum); at += len(some) {
		part := sum[at:min(len(sum), at+len(some))]
		wide := some[:len(part)]
		for i, x := range part {
			wide[i] = int64(x)
		}
		err := noise.AddNoise(wide, v)
		for i, x := range wide {
			if part[i] = int32(x); int64(part[i]) != x && err == nil {
				err = fmt.Errorf("dp: own noise makes %d of coordinate %d: %w", x, at+i, ErrVariance)
			}
		}
		if err != nil {
			clear(sum)
			return err
		}
	}
	return nil
}

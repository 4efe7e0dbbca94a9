package dp

import (
	"errors"
	"flag"
	"math"
	"testing"
)

// ownEvent is a sampled round with devices' own noise.
func ownEvent(t testing.TB, o OwnNoise) Event {
	t.Helper()
	e, err := ReleaseSpec{Round: 1, SamplingRate: 0.01, B2: 2_936_012, NoiseMultiplier: 1.2457365, NoiseScale: 1, Own: o}.Event(135_680)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestSumRatio holds tau against exact sums of discrete Gaussians, by convolution here and
// by a Fourier transform elsewhere (lab/bench/dp/own.py).
func TestSumRatio(t *testing.T) {
	for _, c := range []struct {
		sigma       float64
		n           int
		have, bound float64 // of lab/bench/dp/own.py
	}{
		{0.5, 2, 0.214, 0.848}, {0.5, 100, 1.99, 9.7}, {0.7, 2, 0.0163, 0.0794}, {0.7, 100, 0.0243, 0.191},
		{1, 2, 0.000103, 0.000517}, {1, 10000, 3.63e-06, 0.000815},
	} {
		tau := SumRatio(c.sigma*c.sigma, c.n)
		if math.Abs(tau/c.bound-1) > 6e-3 || tau < c.have {
			t.Errorf("sigma %v of %d: tau %.4g, want %.4g, and at least %.3g", c.sigma, c.n, tau, c.bound, c.have)
		}
		if c.n > 100 {
			continue
		}
		span := int(12*c.sigma*math.Sqrt(float64(c.n))) + 20
		one, sum := gaussPMF(c.sigma*c.sigma, span), gaussPMF(c.sigma*c.sigma, span)
		for range c.n - 1 {
			sum = convolved(sum, one)
		}
		want, worst := gaussPMF(float64(c.n)*c.sigma*c.sigma, span), 0.0
		for i, p := range want {
			if p > 1e-9 {
				worst = max(worst, math.Abs(math.Log(sum[i]/p)))
			}
		}
		if worst > tau || math.Abs(worst/c.have-1) > 0.02 {
			t.Errorf("sigma %v of %d: a log ratio of %.4g, tau %.4g, elsewhere %.4g", c.sigma, c.n, worst, tau, c.have)
		}
	}
	// What the design has of 10,000 devices, and any number of them at what is demanded.
	for sigma, want := range map[float64]float64{1: 8e-4, 1.5: 2e-9, 2: 7e-17, 3: 3e-38} {
		if tau := SumRatio(sigma*sigma, 10_000); tau > 1.2*want || tau < want/3 {
			t.Errorf("sigma %v: %.3g, want about %.3g", sigma, tau, want)
		}
	}
	if all := sumRatio(4); all < 2*SumRatio(4, 10_000)*(1-1e-6) || all > 2e-16 {
		t.Errorf("any number of devices: %.3g", all)
	}
}

// convolved is the middle of the convolution of two vectors of masses about 0.
func convolved(a, b []float64) []float64 {
	out, half := make([]float64, len(a)), len(a)/2
	for i, x := range a {
		if x < 1e-300 {
			continue
		}
		for k, y := range b {
			if at := i + k - half; at >= 0 && at < len(out) {
				out[at] += x * y
			}
		}
	}
	return out
}

// TestOwnSumsArePaid: what sums of discrete Gaussians differ from one by is in epsilon.
func TestOwnSumsArePaid(t *testing.T) {
	e := ownEvent(t, OwnNoise{0.05, 700, 21, false})
	c, err := Compose([]Event{e}, View{})
	if err != nil {
		t.Fatal(err)
	}
	e.Own = OwnNoise{}
	plain, err := Compose([]Event{e}, View{})
	if err != nil {
		t.Fatal(err)
	}
	own := OwnNoise{Multiplier: 2, Honest: 1, Apart: 1} // sigma = 2 grid units
	narrow, err := ReleaseSpec{SamplingRate: 1, B2: 1, NoiseMultiplier: 2, NoiseScale: 1, Own: own}.Event(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	small, err := Compose([]Event{narrow}, View{})
	if err != nil || c.Eta < plain.Eta || small.Eta < 1<<20*1.4e-16 || small.Eta > 1<<20*2e-16 {
		t.Errorf("eta %v beside %v; at 2 grid units %v (%v)", c.Eta, plain.Eta, small.Eta, err)
	}
}

// TestOwnEventIsHeld: an event claims no more than its devices' noise comes to.
func TestOwnEventIsHeld(t *testing.T) {
	good := ownEvent(t, OwnNoise{0.05, 700, 21, true})
	for name, change := range map[string]func(*Event){
		"fewer devices":        func(e *Event) { e.Own.Honest = 620 },
		"no devices":           func(e *Event) { e.Own.Honest = 0 },
		"none apart":           func(e *Event) { e.Own.Apart = 0 },
		"less noise":           func(e *Event) { e.Own.Multiplier = 0.047 },
		"noise NaN":            func(e *Event) { e.Own.Multiplier = math.NaN() },
		"narrow":               func(e *Event) { e.Own = OwnNoise{0.001, math.MaxUint32, 1, false} },
		"a coin that is not":   func(e *Event) { e.SamplingRate = 1 },
		"a provider's coin":    func(e *Event) { e.ProviderRate = 0.5 },
		"fewer, in a planning": func(e *Event) { e.B2, e.Sigma2, e.Dim, e.Own.Honest = 0, Variance{}, 0, 620 },
	} {
		e := good
		if change(&e); !errors.Is(e.Check(), ErrEvent) {
			t.Errorf("%s: %v", name, e.Check())
		}
	}
}

// TestReleaseAddsWhatIsMissing: the noise of so many devices as a release stands in for,
// none where it stands in for none.
func TestReleaseAddsWhatIsMissing(t *testing.T) {
	const d = 60_000
	own := OwnNoise{Multiplier: 0.1, Honest: 100, Apart: 5}
	for _, shares := range []uint64{0, 1, 40} {
		sum := make([]int64, d)
		e, err := Release(sum, ReleaseSpec{SamplingRate: 1, B2: 10_000, NoiseMultiplier: 1, NoiseScale: 1, Own: own, Shares: shares}, NewSampler(drbg(byte(shares))))
		if err != nil || e.Sigma2.Float() != 10_000 {
			t.Fatal(e, err)
		}
		square := 0.0
		for _, x := range sum {
			square += float64(x) * float64(x)
		}
		// The mean of d squares has a standard error of sqrt(2/d); 6 of them are 1e-9.
		want := 100 * float64(shares)
		if have := square / d; math.Abs(have-want) > 6*want*math.Sqrt(2.0/d) {
			t.Errorf("%d shares: variance %.4g, want %.4g", shares, have, want)
		}
	}
	if v, err := (Variance{Lo: 3, Shift: 2}).Times(8); err != nil || v != (Variance{Lo: 6}) {
		t.Errorf("8 times 3/4 is %s (%v)", v, err)
	}
	if _, err := (Variance{Lo: 1 << 40}).Times(math.MaxUint64); !errors.Is(err, ErrVariance) {
		t.Errorf("%v", err)
	}
}

var shareDraws = flag.Int("share-draws", 200_000, "draws of TestSumOfShares")

// TestSumOfShares: n devices' noise together has the law of one draw of n times the
// variance. Pearson's test, false-reject rate 1e-6 a case; -share-draws 10000000 for all of it.
func TestSumOfShares(t *testing.T) {
	for i, c := range []struct {
		sigma2 int64
		n      int
	}{{4, 2}, {4, 16}, {58, 7}} {
		one := Variance{Lo: uint64(c.sigma2)}
		all, err := one.Times(uint64(c.n))
		if err != nil {
			t.Fatal(err)
		}
		span := int(12*math.Sqrt(all.Float())) + 8
		pmf := gaussPMF(all.Float(), span)
		seen := make([]float64, len(pmf))
		sum := make([]int64, 20_000)
		s := NewSampler(drbg(byte(60 + i)))
		for range *shareDraws / len(sum) {
			clear(sum)
			for range c.n {
				if err := s.AddNoise(sum, one); err != nil {
					t.Fatal(err)
				}
			}
			for _, x := range sum {
				seen[int(x)+span]++
			}
		}
		chi, k, have, want := 0.0, -1, 0.0, 0.0
		for j, p := range pmf {
			have += seen[j]
			want += p * float64(*shareDraws/len(sum)*len(sum))
			if want >= 10 || j == len(pmf)-1 {
				chi += (have - want) * (have - want) / max(want, 1)
				k++
				have, want = 0, 0
			}
		}
		if limit := chiSquareLimit(k, 1e-6); chi > limit {
			t.Errorf("%d shares of sigma^2 %d: chi-square %.1f with %d degrees of freedom, limit %.1f", c.n, c.sigma2, chi, k, limit)
		}
		t.Logf("%d shares of sigma^2 %d: chi-square %.1f with %d degrees of freedom over %d draws", c.n, c.sigma2, chi, k, *shareDraws)
	}
}

// TestAddOwnCoversTheVector: what is added is what the source gives, coordinate by
// coordinate, to the end of a vector of several pieces.
func TestAddOwnCoversTheVector(t *testing.T) {
	v := Variance{Lo: 1 << 20}
	for _, n := range []int{1, 4095, 4096, 4097, 10_000} {
		sum, want := make([]int32, n), make([]int64, n)
		for i := range sum {
			sum[i], want[i] = int32(i), int64(i)
		}
		if err := AddOwn(sum, v, NewSampler(drbg(9))); err != nil {
			t.Fatal(err)
		}
		if err := NewSampler(drbg(9)).AddNoise(want, v); err != nil {
			t.Fatal(err)
		}
		for i, x := range want {
			if int64(sum[i]) != x {
				t.Fatalf("%d coordinates: %d is %d, want %d", n, i, sum[i], x)
			}
		}
	}
}

package dp

import (
	"math"
	"testing"
)

// The bugs that design reviews of private training list, each put in: the check
// that guards against it must pass for this package and fail for the bug. (The
// realised denominator belongs to the coordinator and is tested there; here its
// counterpart is the adaptive clip norm's denominator.)

// scaledNoise is a broken source of noise.
type scaledNoise struct {
	inner Noise
	num   int64
	den   int64
}

func (s scaledNoise) AddNoise(dst []int64, v Variance) error {
	x := make([]int64, len(dst))
	if err := s.inner.AddNoise(x, v); err != nil {
		return err
	}
	for i := range dst {
		dst[i] += x[i] * s.num / s.den
	}
	return nil
}

// Bug: half of the noise; and one that is only 2 % off.
func TestMutationHalfNoise(t *testing.T) {
	spec := ReleaseSpec{Round: 1, SamplingRate: 0.1, B2: 1_000_000, NoiseMultiplier: 1, NoiseScale: 1}
	check := func(n Noise) bool {
		x, e := releaseNoise(t, spec, n)
		return noiseTest(x, e.Sigma2.Float())
	}
	if !check(NewSampler(drbg(21))) {
		t.Error("the right noise was rejected (once in 1e6)")
	}
	for _, s := range []scaledNoise{{num: 1, den: 2}, {num: 980, den: 1000}, {num: 1020, den: 1000}, {num: 0, den: 1}} {
		s.inner = NewSampler(drbg(22))
		if check(s) {
			t.Errorf("noise times %d/%d was not noticed", s.num, s.den)
		}
	}
}

// Bug: a round whose cohort was below the floor is not charged, or is released
// without noise.
func TestMutationSkippedEmptyRound(t *testing.T) {
	spec := ReleaseSpec{Round: 1, SamplingRate: 0.05, B2: 1_000_000, NoiseMultiplier: 0.9, NoiseScale: 1}
	run := func(skip bool) []Event {
		var ledger []Event
		for r := range 20 {
			spec.Round, spec.NoiseOnly = uint64(r), r%4 == 3
			sum := make([]int64, 16)
			e, err := Release(sum, spec, NewSampler(drbg(byte(r))))
			if err != nil {
				t.Fatal(err)
			}
			zeros := 0
			for _, x := range sum {
				if x == 0 {
					zeros++
				}
			}
			if zeros == len(sum) {
				t.Fatalf("round %d released no noise", r)
			}
			if !(skip && spec.NoiseOnly) {
				ledger = append(ledger, e)
			}
		}
		return ledger
	}
	want, err := RDPEpsilon([]Event{Rounds(spec.mechanism(), 20)}, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	check := func(ledger []Event) bool {
		g, err := RDPEpsilon(ledger, 1e-6)
		if err != nil {
			t.Fatal(err)
		}
		return g.Rounds == 20 && g.Epsilon >= want.Epsilon
	}
	if !check(run(false)) {
		t.Error("empty rounds do not cost what full ones do")
	}
	if check(run(true)) {
		t.Error("skipped empty rounds were not noticed")
	}
	// The sum of such a round must be nothing but noise.
	spec.NoiseOnly = true
	if _, err := Release([]int64{0, 1}, spec, NewSampler(drbg(1))); err == nil {
		t.Error("a noise-only round with a sum in it was released")
	}
}

func (r ReleaseSpec) mechanism() Mechanism {
	return Mechanism{SamplingRate: r.SamplingRate, NoiseMultiplier: r.NoiseMultiplier}
}

// Bug: the clipped fraction is taken over those who answered.
func TestMutationRealisedDenominator(t *testing.T) {
	a := AdaptiveClip{Quantile: 0.5, Rate: 0.2, Min: 1e-3, Max: 1e3}
	// One member more or less among 10 answers must move log(norm) by no more than
	// rate * (1/2) / expected: that is the sensitivity that was paid for.
	const expected, rate = 100.0, 0.2
	check := func(denominator func(answers float64) float64) bool {
		with, _ := a.Next(1, 0.5*10, denominator(10))
		without, _ := a.Next(1, 0.5*9, denominator(9))
		with2, _ := a.Next(1, -0.5*10, denominator(10))
		without2, _ := a.Next(1, -0.5*9+0.5, denominator(10))
		worst := max(math.Abs(math.Log(with/without)), math.Abs(math.Log(with2/without2)))
		return worst <= rate*1/expected*(1+1e-9)
	}
	if !check(func(float64) float64 { return expected }) {
		t.Error("the constant denominator was rejected")
	}
	if check(func(answers float64) float64 { return answers }) {
		t.Error("the realised denominator was not noticed")
	}
}

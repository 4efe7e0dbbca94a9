package dp

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// noiseTest is the two-sided chi-square test of d coordinates of pure noise
// against the variance they should have, at a false-reject rate of 1e-6 (Wilson and
// Hilferty's cube root; 4.892 normal deviations). With d = 1e5 it rejects an
// estimate of sigma that is 1.1 % off, and so finds a sigma that is 2 % off almost surely.
func noiseTest(x []int64, sigma2 float64) bool {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	k := float64(len(x))
	dev := (math.Cbrt(sum/sigma2/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k))
	return math.Abs(dev) <= 4.892
}

const testDim = 100_000

// releaseNoise releases a known sum and returns what was added to it.
func releaseNoise(t *testing.T, spec ReleaseSpec, noise Noise) ([]int64, Event) {
	t.Helper()
	sum := make([]int64, testDim)
	for i := range sum {
		sum[i] = int64(i%25) - 12
	}
	e, err := Release(sum, spec, noise)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sum {
		sum[i] -= int64(i%25) - 12
	}
	return sum, e
}

func TestReleaseAddsTheNoiseItCharges(t *testing.T) {
	for i, spec := range []ReleaseSpec{
		{Round: 3, SamplingRate: 0.01, B2: 2_900_000, NoiseMultiplier: 1.2457365, NoiseScale: 1},
		{Round: 4, SamplingRate: 1, B2: 900, NoiseMultiplier: 0.4, NoiseScale: 1},
		{Round: 5, SamplingRate: 0.1, B2: 2_900_000, NoiseMultiplier: 1.2, NoiseScale: 0.01, SimulatedRate: 0.01},
	} {
		noise, e := releaseNoise(t, spec, NewSampler(drbg(byte(100+i))))
		z := spec.NoiseMultiplier * spec.NoiseScale
		if !noiseTest(noise, z*z*float64(spec.B2)) {
			t.Errorf("%+v: the noise does not have the variance of the spec", spec)
		}
		if math.Abs(e.Sigma2.Float()/(z*z*float64(spec.B2))-1) > 1e-5 || e.Dim != testDim || e.Round != spec.Round || e.Kind != KindRelease {
			t.Errorf("event %+v does not record %+v", e, spec)
		}
	}
}

func TestReleaseRefuses(t *testing.T) {
	good := ReleaseSpec{Round: 1, SamplingRate: 0.5, B2: 100, NoiseMultiplier: 1, NoiseScale: 1}
	for name, change := range map[string]func(*ReleaseSpec){
		"no sensitivity":           func(r *ReleaseSpec) { r.B2 = 0 },
		"no noise":                 func(r *ReleaseSpec) { r.NoiseMultiplier = 0 },
		"rate above 1":             func(r *ReleaseSpec) { r.SamplingRate = 1.01 },
		"no rate":                  func(r *ReleaseSpec) { r.SamplingRate = 0 },
		"scale without simulation": func(r *ReleaseSpec) { r.NoiseScale = 0.5 },
		"simulation without scale": func(r *ReleaseSpec) { r.SimulatedRate = 0.5 },
		"NaN":                      func(r *ReleaseSpec) { r.NoiseMultiplier = math.NaN() },
		"noise only with a sum":    func(r *ReleaseSpec) { r.NoiseOnly = true },
	} {
		spec := good
		change(&spec)
		sum := []int64{5, -3}
		if _, err := Release(sum, spec, NewSampler(drbg(1))); err == nil {
			t.Errorf("%s was accepted", name)
		}
		if sum[0] != 0 || sum[1] != 0 {
			t.Errorf("%s: the un-noised sum %v survived", name, sum)
		}
	}
}

func TestPoolServesFreshNoise(t *testing.T) {
	spec := ReleaseSpec{Round: 1, SamplingRate: 0.5, B2: 10_000, NoiseMultiplier: 1, NoiseScale: 1}
	v, err := NewVariance(1, 10_000, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPool(context.Background(), v, 30_000, drbg(7))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a, _ := releaseNoise(t, spec, p)
	b, _ := releaseNoise(t, spec, p)
	if !noiseTest(a, 10_000) || !noiseTest(b, 10_000) {
		t.Error("pooled noise does not have its variance")
	}
	// Two draws are independent: their sum has twice the variance, which a
	// repeated draw (four times) or its negative (none) has not.
	for i := range a {
		a[i] += b[i]
	}
	if !noiseTest(a, 20_000) {
		t.Error("two draws from the pool are not independent")
	}
	if err := p.AddNoise(make([]int64, 3), Variance{Lo: 5}); !errors.Is(err, ErrVariance) {
		t.Errorf("another variance: %v", err)
	}
	p.Close()
	sum := []int64{9}
	if err := p.AddNoise(sum, v); !errors.Is(err, ErrPoolClosed) || sum[0] != 0 {
		t.Errorf("after Close: %v, sum %v", err, sum)
	}
}

func TestPoolStopsWhenEntropyFails(t *testing.T) {
	v, err := NewVariance(1, 10_000, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPool(context.Background(), v, 1000, &failAfter{drbg(7), 3 * samplerBuffer})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 100 {
		sum := make([]int64, 5000)
		sum[0] = 1 << 40
		if err := p.AddNoise(sum, v); err != nil {
			if !errors.Is(err, ErrEntropy) || sum[0] != 0 {
				t.Errorf("error %v, sum %v", err, sum[0])
			}
			return
		}
	}
	t.Error("a pool over a broken source never failed")
}

// Concurrent releases get disjoint samples.
func TestPoolIsSafeForConcurrentUse(t *testing.T) {
	v, err := NewVariance(1, 1<<40, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPool(context.Background(), v, 256, drbg(8))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var wg sync.WaitGroup
	out := make([][]int64, 4)
	for i := range out {
		wg.Go(func() {
			out[i] = make([]int64, 2000)
			if err := p.AddNoise(out[i], v); err != nil {
				t.Error(err)
			}
		})
	}
	watchdog.Wait(t, "the readers", wg.Wait)
	// sigma is 2^20: a value shared by two of 8000 samples is common (chance), ten
	// in a row shared are not.
	seen := map[[3]int64]bool{}
	for _, o := range out {
		for i := 0; i+3 <= len(o); i++ {
			k := [3]int64(o[i : i+3])
			if seen[k] {
				t.Fatalf("samples %v were handed out twice", k)
			}
			seen[k] = true
		}
	}
}

// failingNoise adds to half of the coordinates and fails.
type failingNoise struct{}

func (failingNoise) AddNoise(dst []int64, _ Variance) error {
	for i := range dst[:len(dst)/2] {
		dst[i]++
	}
	return ErrEntropy
}

// Whatever a source of noise leaves behind when it fails, nothing of the sum is left.
func TestReleaseClearsWhateverFails(t *testing.T) {
	sum := []int64{5, 6, 7, 8}
	spec := ReleaseSpec{Round: 1, SamplingRate: 1, B2: 9, NoiseMultiplier: 3, NoiseScale: 1}
	if _, err := Release(sum, spec, failingNoise{}); !errors.Is(err, ErrEntropy) {
		t.Fatal(err)
	}
	for i, x := range sum {
		if x != 0 {
			t.Errorf("coordinate %d is %d", i, x)
		}
	}
}

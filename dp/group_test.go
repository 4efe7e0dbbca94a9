package dp

import (
	"errors"
	"math"
	"testing"
)

// The competition's baseline: client rate 0.2, ten rounds, all of a client's
// providers in; eps 8 was claimed with the client's coin as amplification.
func TestVisibleParticipationVoidsTheProduct(t *testing.T) {
	const z, rounds, delta = 0.770484375, 10, 1e-5
	hidden := GroupSampling{ClientRate: 0.2, ProviderRate: 1, Hidden: true}
	claimed, err := hidden.Epsilon(z, rounds, delta, Tight)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(claimed.Epsilon-8) > 0.01 {
		t.Errorf("hidden: %v, want about 8", claimed)
	}
	seen := GroupSampling{ClientRate: 0.2, ProviderRate: 1}
	really, err := seen.Epsilon(z, rounds, delta, Tight)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v\n%v", claimed, really)
	if math.Abs(really.Epsilon-14.46) > 0.1 {
		t.Errorf("visible: %v, want about 14.46", really)
	}
	if _, err := seen.ProductRate(); !errors.Is(err, ErrVisible) {
		t.Errorf("the product rate of visible participation was given out: %v", err)
	}
	if q, err := seen.AccountedRate(); err != nil || q != 1 {
		t.Errorf("accounted rate %v, %v, want 1", q, err)
	}
}

// Both numbers of the design: eps 2 at T = 100, 200, 2000 with everybody's
// participation seen.
func TestVisibleGoldens(t *testing.T) {
	for _, c := range []struct {
		z      float64
		rounds int
		want   float64
	}{{0.801816, 100, 13.7}, {0.837510, 200, 16.5}, {1.245736, 2000, 27.8}} {
		g, err := VisibleEpsilon([]Event{Rounds(Mechanism{0.01, c.z}, c.rounds)}, 1e-6, Tight)
		if err != nil {
			t.Fatal(err)
		}
		// The same by the definition: an average over Binomial(T, q) participations.
		f := func(eps float64) float64 {
			sum := 0.0
			for k := 1; k <= c.rounds; k++ {
				l := lchoose(c.rounds, k) + float64(k)*math.Log(0.01) + float64(c.rounds-k)*math.Log1p(-0.01)
				sum += math.Exp(l + gaussianLogDelta(eps, math.Sqrt(float64(k))/c.z))
			}
			return sum
		}
		if lo, hi := f(g.EpsilonLower), f(g.Epsilon); lo < 1e-6 || hi > 1e-6 || g.Epsilon/g.EpsilonLower > 1+1e-4 {
			t.Errorf("T=%d: [%v, %v] has delta [%v, %v], want around 1e-6", c.rounds, g.EpsilonLower, g.Epsilon, lo, hi)
		}
		if math.Abs(g.Epsilon-c.want) > 0.06 {
			t.Errorf("T=%d: %v, want %v", c.rounds, g, c.want)
		}
	}
}

func lchoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

func TestAddProviderHoldsEachProviderToItsOwnBound(t *testing.T) {
	sum := make([]int32, 3)
	for range 5 { // five providers at the bound: the client is far above it
		if err := AddProvider(sum, []int32{3, -4, 0}, 25); err != nil {
			t.Fatal(err)
		}
	}
	if sum[0] != 15 || sum[1] != -20 || sum[2] != 0 {
		t.Errorf("sum %v", sum)
	}
	if err := AddProvider(sum, []int32{3, -4, 1}, 25); !errors.Is(err, ErrNorm) || sum[0] != 15 {
		t.Errorf("a provider above its bound: %v, sum %v", err, sum)
	}
	if err := AddProvider([]int32{math.MaxInt32}, []int32{1}, 25); !errors.Is(err, ErrNorm) {
		t.Errorf("overflow: %v", err)
	}
	if err := AddProvider(sum, []int32{1}, 25); err == nil {
		t.Error("a shorter vector was added")
	}
}

func TestGroupBound(t *testing.T) {
	if b, err := GroupBound(64, 20, 12); err != nil || b != 64*20*12 {
		t.Errorf("%v %v", b, err)
	}
	for _, c := range [][3]int64{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1 << 31, 1 << 31, 2}, {1 << 40, 1 << 40, 1}} {
		if b, err := GroupBound(int(c[0]), int(c[1]), c[2]); err == nil {
			t.Errorf("%v: %d", c, b)
		}
	}
}

func TestSplitNoise(t *testing.T) {
	for _, z := range []float64{0.3, 1, 7} {
		for _, sb := range []float64{z, 5 * z, 100 * z} {
			zd, err := SplitNoise(z, sb)
			if err != nil {
				t.Fatal(err)
			}
			// Both mechanisms together are one Gaussian of multiplier z.
			if got := 1 / math.Sqrt(1/(zd*zd)+1/(4*sb*sb)); math.Abs(got/z-1) > 1e-12 {
				t.Errorf("z=%v sigma_b=%v: the parts compose to %v", z, sb, got)
			}
			const b2 = 1_000_000
			w2, err := CountWeight(b2, z, sb)
			if err != nil {
				t.Fatal(err)
			}
			sigma := z * math.Sqrt(float64(b2+w2))
			if noise := sigma / (2 * math.Sqrt(float64(w2))); noise > sb*(1+1e-12) {
				t.Errorf("z=%v sigma_b=%v: weight %d leaves count noise %v", z, sb, w2, noise)
			}
			if own := sigma / math.Sqrt(b2); math.Abs(own/zd-1) > 1e-5 {
				t.Errorf("z=%v sigma_b=%v: the update gets %v, SplitNoise says %v", z, sb, own, zd)
			}
		}
		if _, err := SplitNoise(z, z/2); err == nil {
			t.Error("a count that takes the whole budget was accepted")
		}
	}
}

// The rule settles where the wanted fraction of norms is within the clip norm.
func TestAdaptiveClipFindsTheQuantile(t *testing.T) {
	a := AdaptiveClip{Quantile: 0.7, Rate: 0.2, Min: 1e-3, Max: 1e3}
	c := 100.0
	norms := make([]float64, 100) // 0.1, 0.2, ..., 10
	for i := range norms {
		norms[i] = float64(i+1) / 10
	}
	for range 300 {
		count := 0.0
		for _, n := range norms {
			if n <= c {
				count += 0.5
			} else {
				count -= 0.5
			}
		}
		var err error
		if c, err = a.Next(c, count, float64(len(norms))); err != nil {
			t.Fatal(err)
		}
	}
	if math.Abs(c-7) > 0.2 {
		t.Errorf("clip norm %v, want about 7", c)
	}
	one, err := a.Next(2, 0.25*100, 100) // b = 0.75
	if want := 2 * math.Exp(-0.2*0.05); err != nil || math.Abs(one-want) > 1e-12 {
		t.Errorf("one step gives %v, %v, want %v", one, err, want)
	}
	if c, _ := a.Next(1e3, -1e9, 100); c != 1e3 {
		t.Errorf("noise carried the norm to %v", c)
	}
	for _, bad := range []AdaptiveClip{{}, {Quantile: 1, Rate: 1, Min: 1, Max: 1}, {Quantile: 0.5, Rate: 0.2, Min: 2, Max: 1}} {
		if _, err := bad.Next(1, 0, 10); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if _, err := a.Next(1, math.NaN(), 10); err == nil {
		t.Error("a NaN count was accepted")
	}
}

package dp

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func lchoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

func TestAddUnitHoldsEachUnitToItsOwnBound(t *testing.T) {
	sum := make([]int32, 3)
	for range 5 { // five providers at the bound: the client is far above it
		if err := AddUnit(sum, []int32{3, -4, 0}, 25); err != nil {
			t.Fatal(err)
		}
	}
	if sum[0] != 15 || sum[1] != -20 || sum[2] != 0 {
		t.Errorf("sum %v", sum)
	}
	if err := AddUnit(sum, []int32{3, -4, 1}, 25); !errors.Is(err, ErrNorm) || sum[0] != 15 {
		t.Errorf("a provider above its bound: %v, sum %v", err, sum)
	}
	if err := AddUnit([]int32{math.MaxInt32}, []int32{1}, 25); !errors.Is(err, ErrNorm) {
		t.Errorf("overflow: %v", err)
	}
	if err := AddUnit(sum, []int32{1}, 25); err == nil {
		t.Error("a shorter vector was added")
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
			for _, q := range []int32{1, 12, 1 << 20} {
				c, err := NewCountCode(b2, q, z, sb)
				if err != nil {
					t.Fatal(err)
				}
				sigma := z * math.Sqrt(float64(b2+c.B2()))
				if noise := sigma / (2 * math.Sqrt(float64(c.B2()))); noise > sb*(1+1e-12) {
					t.Errorf("z=%v sigma_b=%v: %+v leaves count noise %v", z, sb, c, noise)
				}
				if c.Symbol < 1 || c.Symbol > q || c.Coordinates < 1 {
					t.Errorf("%+v with symbols up to %d", c, q)
				}
				// Symbols are whole numbers: a little more than asked for is spent.
				if own := sigma / math.Sqrt(b2); own < zd*(1-1e-12) || own/zd-1 > 3/math.Sqrt(float64(c.B2())) {
					t.Errorf("z=%v sigma_b=%v: the update gets %v, SplitNoise says %v", z, sb, own, zd)
				}
			}
		}
		if _, err := SplitNoise(z, z/2); err == nil {
			t.Error("a count that takes the whole budget was accepted")
		}
	}
	if c, err := NewCountCode(1<<60, 1, 1, 1); err == nil {
		t.Errorf("%+v for a weight of 2^58 in ternary symbols", c)
	}
	for _, bad := range []int32{0, -1} {
		if c, err := NewCountCode(100, bad, 1, 1); err == nil {
			t.Errorf("%+v for a largest symbol of %d", c, bad)
		}
	}
}

// The count of devices that are in, whatever the symbols.
func TestCountCode(t *testing.T) {
	for _, c := range []CountCode{{1, 1}, {3, 12}, {40, 7}} {
		sum, dst := make([]int64, c.Coordinates), make([]int32, c.Coordinates)
		want := 0.0
		for i := range 10 {
			norm2 := int64(0)
			c.Encode(dst, i < 7)
			for j, s := range dst {
				sum[j] += int64(s)
				norm2 += int64(s) * int64(s)
			}
			if norm2 != c.B2() {
				t.Fatalf("%+v: squared norm %d, B2 %d", c, norm2, c.B2())
			}
			if want--; i < 7 {
				want += 2
			}
		}
		if got := c.Decode(sum); got != want/2 {
			t.Errorf("%+v: count %v, want %v", c, got, want/2)
		}
	}
	if got := (CountCode{}).Decode(nil); got != 0 {
		t.Errorf("no count is %v", got)
	}
}

// Noise in the count must not move the place where the norm settles: of devices
// with norms spread over (0, 10), and a count as noisy as a small cohort's.
func TestAdaptiveClipUnderNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const devices, noise, rounds = 24, 0.42, 4000
	for _, quantile := range []float64{0.1, 0.5, 0.8, 0.9} {
		a := AdaptiveClip{Quantile: quantile, Rate: 0.05, Min: 1e-3, Max: 1e3}
		c, within := 10*quantile, 0.0
		for range rounds {
			b := min(c/10, 1)
			within += b / rounds
			var err error
			if c, err = a.Next(c, devices*(b-0.5+noise*rng.NormFloat64()), devices); err != nil {
				t.Fatal(err)
			}
		}
		if math.Abs(within-quantile) > 0.05 {
			t.Errorf("quantile %v: %.3f of the devices are within the norm on average, which ends at %.4g", quantile, within, c)
		}
	}
}

// The step is the paper's formula, whatever the noise; the range ends it.
func TestAdaptiveClipStep(t *testing.T) {
	a := AdaptiveClip{Quantile: 0.9, Rate: 0.2, Min: 1e-3, Max: 1e3}
	for count, want := range map[float64]float64{
		5: math.Exp(-0.2 * (1 - 0.9)), -5: math.Exp(0.2 * 0.9), 20: math.Exp(-0.2 * (2.5 - 0.9)), -20: math.Exp(0.2 * (1.5 + 0.9)),
		1e9: 1e-3, -1e9: 1e3,
	} {
		if got, err := a.Next(1, count, 10); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("a count of %v moves the norm by %v, %v, want %v", count, got, err, want)
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

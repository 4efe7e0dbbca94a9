package dp

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestGoldenCompetitionRDP(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "rdp_epsilon.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Cases []struct {
			Q       float64 `json:"q"`
			Noise   float64 `json:"noise_multiplier"`
			Steps   int     `json:"steps"`
			Delta   float64 `json:"delta"`
			Epsilon float64 `json:"epsilon"`
			Alpha   float64 `json:"best_alpha"`
			RDP     map[string]float64
		} `json:"cases"`
	}
	if err := json.Unmarshal(b, &f); err != nil || len(f.Cases) == 0 {
		t.Fatalf("%d cases, %v", len(f.Cases), err)
	}
	for _, c := range f.Cases {
		p := Part{Q: c.Q, Z: c.Noise, Rounds: c.Steps, Seen: 1}
		if got := rdpEpsilonAt([]Part{p}, c.Alpha, c.Delta); math.Abs(got/c.Epsilon-1) > 1e-6 {
			t.Errorf("%+v: epsilon %v", c, got)
		}
		for k, want := range c.RDP {
			a, err := strconv.ParseFloat(k, 64)
			if err != nil {
				t.Fatal(err)
			}
			got := float64(c.Steps) * p.renyi(a)
			// The published implementation drops signs in its fractional series: at order
			// 1.5 it is up to 3 % too high. Ours must not be above it.
			if got > want*(1+1e-6) || got < want*(1-1e-6) && (a == math.Trunc(a) || got < want*0.96) {
				t.Errorf("q=%v z=%v order %v: %v, golden %v", c.Q, c.Noise, a, got, want)
			}
		}
	}
}

// Three ways to one moment: the binomial sum, the integral, and the series of
// Mironov, Talwar, Zhang 2019, section 3.3, with its signs kept.
func TestMomentsAgree(t *testing.T) {
	for _, c := range [][2]float64{{0.01, 1}, {0.3, 0.6}, {1e-4, 2}, {0.2, 0.3}, {0.9, 5}, {1e-5, 50}} {
		for _, a := range []float64{2, 3, 7, 40, 256} {
			i, r := momentInteger(c[0], c[1], int(a)), momentReal(c[0], c[1], a)
			if math.Abs(float64(i-r)) > 1e-9*(1+math.Abs(float64(i))) {
				t.Errorf("q=%v z=%v order %v: log moments %v and %v", c[0], c[1], a, i, r)
			}
		}
		for _, a := range []float64{1.5, 2.7, 4.3, 10.9} {
			got := momentReal(c[0], c[1], a).log1p()
			want := momentSeries(c[0], c[1], a)
			if math.Abs(got-want) > 1e-8*math.Abs(want)+1e-9 {
				t.Errorf("q=%v z=%v order %v: log moment %v, series %v", c[0], c[1], a, got, want)
			}
		}
	}
}

// momentSeries is log A for a fractional order. Its terms alternate from some k on;
// the last two partial sums are averaged.
func momentSeries(q, z, a float64) float64 {
	logTail := func(t float64) float64 { // log P[N(0,1) > t]
		if t < 30 {
			return math.Log(math.Erfc(t/math.Sqrt2) / 2)
		}
		t2 := t * t // Mills' ratio by its asymptotic series, to 105/t^8
		return -t2/2 - 0.5*math.Log(2*math.Pi) - math.Log(t) + math.Log1p(-1/t2*(1-3/t2*(1-5/t2)))
	}
	z0 := z*z*math.Log(1/q-1) + 0.5
	sum, before, binom := 0.0, 0.0, 1.0
	for i := range 20000 {
		k := float64(i)
		j := a - k
		s0 := math.Exp(k*math.Log(q) + j*math.Log1p(-q) + (k*k-k)/(2*z*z) + logTail((k-z0)/z))
		s1 := math.Exp(j*math.Log(q) + k*math.Log1p(-q) + (j*j-j)/(2*z*z) + logTail((z0-j)/z))
		before = sum
		sum += binom * (s0 + s1)
		binom *= (a - k) / (k + 1)
	}
	return math.Log((sum + before) / 2)
}

// The moment at whole orders is that of discrete Gaussians on whole numbers too, by summing one.
func TestMomentOfDiscreteNoise(t *testing.T) {
	const sigma2, q, shift, order = 2.3, 0.2, 2, 5
	pq := gaussPMF(sigma2, 80)
	sum := 0.0
	for i, w := range pq {
		x := float64(i - 80)
		ratio := math.Exp((2*x*shift - shift*shift) / (2 * sigma2))
		sum += w * math.Pow(1-q+q*ratio, order)
	}
	if got := momentInteger(q, math.Sqrt(sigma2)/shift, order).log1p(); math.Abs(got/math.Log(sum)-1) > 1e-10 {
		t.Errorf("integer moment of the discrete Gaussian %v, of the continuous one %v", math.Log(sum), got)
	}
}

package dp

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/cputime"
)

// drbg is AES-128-CTR over a fixed key: statistical tests with it always see
// the same bytes, so that their false-reject rates are about the choice of
// the seed and not about every run.
func drbg(seed byte) io.Reader {
	block, err := aes.NewCipher(bytes.Repeat([]byte{seed}, 16))
	if err != nil {
		panic(err)
	}
	return &ctr{cipher.NewCTR(block, make([]byte, 16))}
}

type ctr struct{ s cipher.Stream }

func (c *ctr) Read(b []byte) (int, error) {
	clear(b)
	c.s.XORKeyStream(b, b)
	return len(b), nil
}

func variance(t testing.TB, z float64, b2 int64) Variance {
	t.Helper()
	v, err := NewVariance(z, b2, 1)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// gaussPMF is P[x] of the discrete Gaussian, for |x| <= span.
func gaussPMF(sigma2 float64, span int) []float64 {
	p := make([]float64, 2*span+1)
	sum := 0.0
	for i := range p {
		x := float64(i - span)
		p[i] = math.Exp(-x * x / (2 * sigma2))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// chiSquareLimit is a value that chi-square with k degrees of freedom exceeds
// with probability at most p (Laurent, Massart 2000).
func chiSquareLimit(k int, p float64) float64 {
	x := -math.Log(p)
	return float64(k) + 2*math.Sqrt(float64(k)*x) + 2*x
}

// Pearson's test of the sampled histogram against the exact distribution; bins
// with fewer than 10 expected are joined. False-reject rate 1e-6 a case.
func TestSamplerMatchesTheDistribution(t *testing.T) {
	const n = 200_000
	for i, c := range []struct {
		z  float64
		b2 int64
	}{{0.3, 1}, {0.7, 2}, {1, 1}, {1.3, 7}, {2.5, 4}, {1, 400}, {0.8, 100_000}} {
		v := variance(t, c.z, c.b2)
		s := NewSampler(drbg(byte(i + 1)))
		out := make([]int64, n)
		if err := s.Sample(out, v); err != nil {
			t.Fatal(err)
		}
		span := int(12*math.Sqrt(v.Float())) + 8
		pmf := gaussPMF(v.Float(), span)
		width := max(1, span/60)
		obs, exp := make([]float64, len(pmf)/width+1), make([]float64, len(pmf)/width+1)
		for _, x := range out {
			if x < int64(-span) || x > int64(span) {
				t.Fatalf("sigma^2 %s: sample %d", v, x)
			}
			obs[(int(x)+span)/width]++
		}
		for j, p := range pmf {
			exp[j/width] += p * n
		}
		chi, k := 0.0, -1
		eo, ee := 0.0, 0.0
		for j := range obs {
			eo += obs[j]
			ee += exp[j]
			if ee >= 10 || j == len(obs)-1 {
				chi += (eo - ee) * (eo - ee) / max(ee, 1)
				k++
				eo, ee = 0, 0
			}
		}
		if limit := chiSquareLimit(k, 1e-6); chi > limit {
			t.Errorf("sigma^2 %s: chi-square %.1f with %d degrees of freedom, limit %.1f", v, chi, k, limit)
		}
	}
}

// Large variances, narrow and wide arithmetic: mean, variance and kurtosis
// within 5.2 standard errors (false-reject rate 2e-7 each).
func TestSamplerMoments(t *testing.T) {
	const n = 100_000
	for i, v := range []Variance{
		variance(t, 1.25, 3_000_000),
		variance(t, 1, 1<<31-1), // the largest that fits 64-bit arithmetic, about
		variance(t, 1, 1<<40+12345),
		variance(t, 3, math.MaxInt64),
	} {
		out := make([]int64, n)
		if err := NewSampler(drbg(byte(40+i))).Sample(out, v); err != nil {
			t.Fatal(err)
		}
		sigma := math.Sqrt(v.Float())
		var m1, m2, m4 float64
		for _, x := range out {
			y := float64(x) / sigma
			m1 += y
			m2 += y * y
			m4 += y * y * y * y
		}
		m1, m2, m4 = m1/n, m2/n, m4/n
		if math.Abs(m1) > 5.2/math.Sqrt(n) || math.Abs(m2-1) > 5.2*math.Sqrt(2.0/n) || math.Abs(m4-3) > 5.2*math.Sqrt(96.0/n) {
			t.Errorf("sigma^2 %s: moments %v %v %v, want 0 1 3", v, m1, m2, m4)
		}
	}
}

// The narrow and the wide arithmetic are twins: from the same bytes they take
// the same decisions, down to which bytes they use.
func TestWideArithmeticIsTheNarrowOne(t *testing.T) {
	g, err := newGaussian(variance(t, 1.1, 977))
	if err != nil {
		t.Fatal(err)
	}
	n, d := new(big.Int).SetUint64(g.n), new(big.Int).SetUint64(g.d)
	w := newWide(n, d.Mul(d, new(big.Int).SetUint64(g.t)), new(big.Int).SetUint64(g.m))
	// Acceptance by exact rational thresholds: compare the frequency over many coins.
	const coins = 60_000
	for _, abs := range []uint64{0, 7, 30, 90} {
		a, b := newBitSource(drbg(9), 4096), newBitSource(drbg(10), 4096)
		na, nb := 0, 0
		for range coins {
			x := new(big.Int).SetUint64(abs)
			x.Mul(x, w.td).Sub(x, n)
			x.Mul(x, x)
			hi, lo := new(big.Int).Rsh(x, 64).Uint64(), x.Uint64()
			if x.BitLen() <= 64 {
				hi = 0
			} else {
				lo = new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
			}
			if a.bernoulliExp(hi, lo, g.m) {
				na++
			}
			if w.accept(b, abs) {
				nb++
			}
		}
		gamma := math.Pow(float64(abs)*float64(g.t)*float64(g.d)-float64(g.n), 2) / float64(g.m)
		want := coins * math.Exp(-gamma)
		sd := math.Sqrt(want*(1-want/coins)) + 1
		for _, got := range []int{na, nb} { // 5.2 standard deviations: false-reject rate 2e-7
			if math.Abs(float64(got)-want) > 5.2*sd {
				t.Errorf("|y| = %d: %d of %d coins, want %.0f +- %.0f", abs, got, coins, want, sd)
			}
		}
	}
}

// A Bernoulli coin is decided by comparing with a uniform real bit by bit: check
// the comparison itself, exactly, on crafted bits.
func TestBernoulliIsExact(t *testing.T) {
	word := func(us ...uint32) io.Reader {
		var b bytes.Buffer
		for _, u := range us {
			b.Write([]byte{byte(u), byte(u >> 8), byte(u >> 16), byte(u >> 24)})
		}
		b.Write(make([]byte, 64))
		return &b
	}
	for _, c := range []struct {
		a, b uint64
		bits []uint32
		want bool
	}{
		{1, 2, []uint32{0x7fffffff}, true}, // up to just below 1/2
		{1, 2, []uint32{0x80000000}, false},
		{1, 3, []uint32{0x55555555, 0x55555555, 0x55555554}, true}, // 1/3 = 0.0101...
		{1, 3, []uint32{0x55555555, 0x55555555, 0x55555556}, false},
		{0, 5, []uint32{0}, false},
		{5, 5, []uint32{math.MaxUint32}, true},
		{1<<62 - 1, 1 << 62, []uint32{math.MaxUint32, 0xfffffffb}, true},
		{1<<62 - 1, 1 << 62, []uint32{math.MaxUint32, 0xfffffffc}, false},
	} {
		if got := newBitSource(word(c.bits...), 4).bernoulli(c.a, c.b); got != c.want {
			t.Errorf("%d/%d against %x: %v", c.a, c.b, c.bits, got)
		}
	}
	// exp(-1): true for a real in [1/6, 1/2), [1/120, 1/24), ...
	for _, c := range []struct {
		bits []uint32
		want bool
	}{
		{[]uint32{0x7fffffff}, true}, {[]uint32{0x80000001}, false}, {[]uint32{0x80000000}, false},
		{[]uint32{0x2aaaaaab}, true}, {[]uint32{0x2aaaaaaa, 0xaaaaaaab}, true}, // 1/6 = 0x0.2aaaaaaa...
		{[]uint32{0x2aaaaaaa, 0xaaaaaaaa, 0xaaaaaaaa, 0xaaaaaaaa, 0}, false},
		{[]uint32{0x0aaaaaaa, 0xaaaaaaaa, 0xaaaaaaaa, 0xaaaaaaab, 0}, false}, // just above 1/24: K = 4
		{[]uint32{0x0aaaaaaa, 0xaaaaaaa0}, true},                             // just below: K = 5
	} {
		if got := newBitSource(word(c.bits...), 4).bernoulliExpOne(); got != c.want {
			t.Errorf("exp(-1) against %x: %v", c.bits, got)
		}
	}
	for _, c := range []struct {
		hi, lo uint32
		want   bool
	}{{0x55555555, 0x55555554, true}, {0x55555555, 0x55555556, false}} {
		if got := newBitSource(word(c.hi, c.lo), 4).bernoulliBig(big.NewInt(1), big.NewInt(3)); got != c.want {
			t.Errorf("big 1/3 against %x %x: %v", c.hi, c.lo, got)
		}
	}
}

// below is uniform: all remainders equally often, exactly, over all 2^32 words
// of which a sample is in. False-reject rate 1e-6 a case.
func TestBelowIsUniform(t *testing.T) {
	for i, n := range []uint64{1, 2, 3, 10, 1000, 1<<32 - 1, 1 << 32, 1<<32 + 7, 1<<63 + 11} {
		s := newBitSource(drbg(byte(60+i)), 4096)
		const draws, bins = 40_000, 10
		var obs [bins]float64
		for range draws {
			x := s.below(n)
			if x >= n {
				t.Fatalf("below(%d) = %d", n, x)
			}
			obs[uint64(float64(x)/float64(n)*bins)]++
		}
		if n < bins || n == 10 && obs[3] == 0 {
			continue
		}
		chi := 0.0
		for _, o := range obs {
			chi += (o - draws/bins) * (o - draws/bins) / (draws / bins)
		}
		if n%bins == 0 || n > 1000 {
			if limit := chiSquareLimit(bins-1, 1e-6); chi > limit {
				t.Errorf("below(%d): chi-square %v, limit %v", n, chi, limit)
			}
		}
	}
}

// failAfter fails after n bytes.
type failAfter struct {
	r io.Reader
	n int
}

var errBroken = errors.New("broken")

func (f *failAfter) Read(b []byte) (int, error) {
	if f.n <= 0 {
		return 0, errBroken
	}
	n, err := f.r.Read(b[:min(len(b), f.n)])
	f.n -= n
	return n, err
}

func TestEntropyFailureLeavesNothing(t *testing.T) {
	for _, n := range []int{0, 1, samplerBuffer - 1, samplerBuffer, 3*samplerBuffer + 5} {
		sum := make([]int64, 200_000)
		for i := range sum {
			sum[i] = 77
		}
		spec := ReleaseSpec{Round: 1, SamplingRate: 0.1, B2: 1000, NoiseMultiplier: 1, NoiseScale: 1}
		_, err := Release(sum, spec, NewSampler(&failAfter{drbg(1), n}))
		if !errors.Is(err, ErrEntropy) || !errors.Is(err, errBroken) {
			t.Fatalf("after %d bytes: error %v", n, err)
		}
		for i, x := range sum {
			if x != 0 {
				t.Fatalf("after %d bytes: coordinate %d is %d", n, i, x)
			}
		}
	}
	if _, _, err := DrawCohort([][]byte{{1}, {2}}, 0.5, &failAfter{drbg(1), 40}); !errors.Is(err, ErrEntropy) {
		t.Errorf("cohort: %v", err)
	}
}

func TestVarianceRoundsUp(t *testing.T) {
	for _, z := range []float64{0.01, 0.3, 1, 1.2457365, math.Pi, 100} {
		for _, b2 := range []int64{1, 3, 977, 2_936_012, 1 << 40, math.MaxInt64} {
			for _, scale := range []float64{1, 0.37, 0.0024} {
				v, err := NewVariance(z, b2, scale)
				if err != nil {
					if z*z*scale*scale*float64(b2) > 1e-6 {
						t.Errorf("%v %v %v: %v", z, b2, scale, err)
					}
					continue
				}
				exact := new(big.Rat).SetInt64(b2)
				for _, f := range []float64{z, z, scale, scale} {
					exact.Mul(exact, new(big.Rat).SetFloat64(f))
				}
				got := new(big.Rat).SetFrac(v.num(), v.den())
				diff := new(big.Rat).Sub(got, exact)
				rel, _ := new(big.Rat).Quo(diff, exact).Float64()
				abs, _ := diff.Float64()
				if diff.Sign() < 0 || rel > 1e-8 && abs >= 1 {
					t.Errorf("z=%v b2=%d scale=%v: %s is off by %v", z, b2, scale, v, rel)
				}
				if _, err := newGaussian(v); err != nil {
					t.Errorf("z=%v b2=%d scale=%v: %v", z, b2, scale, err)
				}
			}
		}
	}
	for _, c := range []struct {
		z     float64
		b2    int64
		scale float64
	}{{0, 1, 1}, {-1, 1, 1}, {math.NaN(), 1, 1}, {math.Inf(1), 1, 1}, {1, 0, 1}, {1, -5, 1}, {1, 1, 0}, {1, 1, 1.5}, {1e-4, 1, 1}, {1e8, math.MaxInt64, 1}} {
		if v, err := NewVariance(c.z, c.b2, c.scale); !errors.Is(err, ErrVariance) {
			t.Errorf("%+v gave %v, %v", c, v, err)
		}
	}
}

func TestOverflowIsRefused(t *testing.T) {
	v := variance(t, 1, 1<<20)
	sum := []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	if err := NewSampler(drbg(3)).AddNoise(sum, v); !errors.Is(err, ErrVariance) || sum[0] != 0 {
		t.Errorf("%v, %v", err, sum)
	}
}

func BenchmarkSampler(b *testing.B) {
	for _, b2 := range []int64{10, 3_000_000, 1 << 50} {
		v := variance(b, 1.2457, b2)
		b.Run(fmt.Sprintf("sigma=%.3g", math.Sqrt(v.Float())), func(b *testing.B) {
			s := NewSampler(rand.Reader)
			dst := make([]int64, 8192)
			defer cputime.Benchmark(b)()
			for b.Loop() {
				if err := s.Sample(dst, v); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(dst))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Msamples/s")
		})
	}
}

// words is a source of given 32-bit words, and then an error.
func words(w ...uint32) *bitSource {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return newBitSource(bytes.NewReader(b), 4)
}

// The words that would favour small numbers are thrown away: of 2^32 words as many
// are left for each.
func TestBelowThrowsAway(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		w    []uint32
		want uint64
	}{
		{3, []uint32{0, 0xffffffff}, 2}, // 2^32 mod 3 = 1: the word 0 has no partner
		{3, []uint32{1, 0xffffffff}, 0},
		{1<<31 + 1, []uint32{0, 1 << 31}, 1 << 30}, // about half of all words
		{1 << 32, []uint32{0, 7}, 0},               // none
	} {
		if got := words(c.w...).below(c.n); got != c.want {
			t.Errorf("below %d of %x: %d, want %d", c.n, c.w, got, c.want)
		}
	}
}

// Single bits are those of the words, each once.
func TestBitsAreUsedOnce(t *testing.T) {
	s := words(0x80000001, 0x2)
	var got []uint32
	for range 34 {
		got = append(got, s.bit())
	}
	for i, b := range got {
		want := uint32(0)
		if i == 0 || i == 31 || i == 33 {
			want = 1
		}
		if b != want {
			t.Errorf("bit %d is %d", i, b)
		}
	}
}

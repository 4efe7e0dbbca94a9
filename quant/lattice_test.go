package quant

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// seeded is a deterministic source for tests. Every read differs.
type seeded struct{ r *rand.ChaCha8 }

func newSeeded(seed byte) *seeded { return &seeded{rand.NewChaCha8([32]byte{seed})} }

func (s *seeded) Read(p []byte) (int, error) { return s.r.Read(p) }

func mustLattice(t testing.TB, scheme string, d int, clip float64) *Lattice {
	t.Helper()
	s, err := Lookup(scheme)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLattice(s, d, clip, [32]byte{42})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestRoundingUnbiased draws 40,000 roundings of one value and compares their
// mean and variance with what they must be. A right implementation fails one
// of its 7*40 checks of the mean at 6 standard errors with a chance below 6e-7,
// and the seed is fixed.
func TestRoundingUnbiased(t *testing.T) {
	const draws = 40_000
	random, src := make([]byte, 4*draws), newSeeded(1)
	y, out := make([]float32, draws), make([]int32, draws)
	for _, name := range SchemeNames() {
		l := mustLattice(t, name, 64, 1)
		q := float64(l.MaxSymbol())
		for k := range 40 {
			v := float32((float64(k)/19.5 - 1) * q * 0.999)
			for i := range y {
				y[i] = v
			}
			if _, err := src.Read(random); err != nil {
				t.Fatal(err)
			}
			if l.cells == nil {
				roundUniform(out, y, random, 1, l.MaxSymbol())
			} else {
				roundCells(out, y, random, 1, l.MaxSymbol(), l.cells)
			}
			lo, width := math.Floor(float64(v)), 1.0
			if l.cells != nil {
				c := l.cells[int(lo)+int(q)]
				lo, width = float64(int16(c)), float64(c>>16)
			}
			p := (float64(v) - lo) / width
			var sum float64
			for _, s := range out {
				if float64(s) != lo && float64(s) != lo+width {
					t.Fatalf("%s: %v became %d, neighbours are %v and %v", name, v, s, lo, lo+width)
				}
				sum += float64(s)
			}
			sigma := width * math.Sqrt(p*(1-p)/draws)
			if diff := sum/draws - float64(v); math.Abs(diff) > 6*sigma+width*0x1p-23 {
				t.Errorf("%s: mean of %v is off by %g, standard error %g", name, v, diff, sigma)
			}
		}
	}
}

// TestEncodeUnbiased encodes one vector 300 times. The squared distance of the
// mean from the vector must be what rounding alone causes: the statistic is
// close to a chi-square with D degrees of freedom, D = 4096, whose relative
// deviation is sqrt(2/D) = 2.2%; a limit of 12% is 5.4 of them, a chance of
// 7e-8. A bias of 0.03 grid units in every coordinate would show.
func TestEncodeUnbiased(t *testing.T) {
	const d, times = 4096, 300
	for _, name := range []string{"nf4", "int5", "int4", "int3", "tern", "fixed16"} {
		l := mustLattice(t, name, d, 1)
		x := testVector(9, d)
		length := math.Sqrt(dot(x, x))
		for i := range x {
			x[i] *= float32(0.4 / length) // far below the clip norm: no coordinate is clipped
		}
		src := newSeeded(2)
		sum, symbols := make([]int64, d), make([]int32, d)
		for range times {
			rep, err := l.EncodeInto(symbols, x, src)
			if err != nil {
				t.Fatal(err)
			}
			if rep.Scale != 1 || rep.Draws != 1 {
				t.Fatalf("%s: a short vector needed %+v", name, rep)
			}
			for i, s := range symbols {
				sum[i] += int64(s)
			}
		}
		// The expectation, coordinate by coordinate, and its variance.
		y, tmp := make([]float32, d), append([]float32(nil), x...)
		l.rot.forward(y, tmp)
		var chi float64
		for i := range y {
			v := float64(y[i]) / (float64(l.R()) * l.Delta())
			v = max(min(v, float64(l.MaxSymbol())), -float64(l.MaxSymbol()))
			lo, width := math.Floor(v), 1.0
			if l.cells != nil {
				c := l.cells[int(lo)+int(l.MaxSymbol())]
				lo, width = float64(int16(c)), float64(c>>16)
			}
			p := (v - lo) / width
			variance := max(width*width*p*(1-p)/times, 1e-9)
			diff := float64(sum[i])/times - v
			chi += diff * diff / variance
		}
		if ratio := chi / d; math.Abs(ratio-1) > 0.12 {
			t.Errorf("%s: squared error is %.3f times that of rounding", name, ratio)
		}
	}
}

// TestRoundingVariance simulates the error that rounding adds at full norm and
// compares it with the integral over the Gaussian. D = 32768 coordinates give
// a relative standard error below 1%; the limit is 6%.
func TestRoundingVariance(t *testing.T) {
	const d = 32768
	for _, name := range []string{"nf4", "int5", "int4", "int3", "tern", "fixed16"} {
		l := mustLattice(t, name, d, 1)
		x := testVector(3, d)
		symbols := make([]int32, l.D())
		rep, err := l.EncodeInto(symbols, x, newSeeded(3))
		if err != nil {
			t.Fatal(err)
		}
		y, tmp := make([]float32, d), append([]float32(nil), x...)
		l.rot.forward(y, tmp)
		var got float64
		for i, s := range symbols {
			v := float64(y[i]) * rep.Scale / (float64(l.R()) * l.Delta())
			v = max(min(v, float64(l.MaxSymbol())), -float64(l.MaxSymbol()))
			got += (float64(s) - v) * (float64(s) - v) / d
		}
		if _, _, want := moments(l.Scheme()); math.Abs(got/want-1) > 0.06 {
			t.Errorf("%s: rounding variance is %.4f, integral says %.4f", name, got, want)
		}
	}
}

// TestNormNeverExceeded encodes friendly and hostile vectors and checks the
// bound on what comes out. The hostile ones are made in the rotated domain,
// where rounding adds the most, so that redraw and shrinking are needed.
func TestNormNeverExceeded(t *testing.T) {
	shrunk := 0
	for _, name := range SchemeNames() {
		for _, d := range []int{64, 1000, 8192} {
			l := mustLattice(t, name, d, 3)
			n := l.D()
			inputs := [][]float32{make([]float32, d), testVector(1, d), make([]float32, d)}
			inputs[2][d/2] = 1e30
			if d == n {
				q := float64(l.MaxSymbol())
				for _, level := range []float64{-0.83, 0.5 / q, -1.5 / q, 1, -0.4} {
					y := make([]float32, n)
					for i := range y {
						y[i] = float32(level * q * l.Delta())
						if i%5 == 0 {
							y[i] = -y[i]
						}
					}
					x := make([]float32, n)
					l.rot.inverse(x, y)
					inputs = append(inputs, x)
				}
			}
			symbols := make([]int32, n)
			src := newSeeded(byte(d))
			for k, x := range inputs {
				rep, err := l.EncodeInto(symbols, x, src)
				if err != nil {
					t.Fatal(err)
				}
				var norm2 int64
				for _, s := range symbols {
					if s > l.MaxSymbol() || s < -l.MaxSymbol() {
						t.Fatalf("%s, d=%d, input %d: symbol %d", name, d, k, s)
					}
					norm2 += int64(s) * int64(s)
				}
				if norm2 > l.B2() || norm2 != rep.Norm2 {
					t.Errorf("%s, d=%d, input %d: squared norm %d, reported %d, bound %d", name, d, k, norm2, rep.Norm2, l.B2())
				}
				if rep.Draws > 2 {
					shrunk++
				}
			}
		}
	}
	if shrunk == 0 {
		t.Error("no input needed shrinking: the test does not reach that path")
	}
}

// TestUnreachableBound checks the last resort: zeros.
func TestUnreachableBound(t *testing.T) {
	l := mustLattice(t, "nf4", 256, 1)
	l.b2 = 3
	symbols := make([]int32, l.D())
	rep, err := l.EncodeInto(symbols, testVector(1, 256), newSeeded(1))
	if err != nil || !rep.Dropped || rep.Draws != 66 {
		t.Fatalf("report %+v, %v", rep, err)
	}
	for i, s := range symbols {
		if s != 0 {
			t.Fatalf("symbol %d is %d", i, s)
		}
	}
}

// TestDecodeMean sums a cohort and compares with the true mean.
func TestDecodeMean(t *testing.T) {
	const d, cohort = 5000, 40
	for _, name := range SchemeNames() {
		l := mustLattice(t, name, d, 1)
		sum, mean := make([]int64, l.D()), make([]float64, d)
		src := newSeeded(4)
		for k := range cohort {
			x := testVector(uint64(k), d)
			for i := range x {
				x[i] += 1 // a common part, so that there is a mean
			}
			length := float32(math.Sqrt(dot(x, x)))
			for i := range x {
				x[i] /= length
				mean[i] += float64(x[i]) / cohort
			}
			symbols, err := l.Encode(x, src)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range symbols {
				sum[i] += int64(s)
			}
		}
		if err := l.CheckSum(sum, cohort); err != nil {
			t.Fatal(err)
		}
		got, err := l.DecodeMean(sum, cohort)
		if err != nil {
			t.Fatal(err)
		}
		var diff, size float64
		for i := range got {
			diff += math.Pow(float64(got[i])-mean[i], 2)
			size += mean[i] * mean[i]
		}
		// Rounding adds moments' third value, in squared steps, per coordinate and
		// device; what clipping distorts is no more than that again.
		_, _, rounding := moments(l.Scheme())
		step := l.Delta() / math.Erf(l.Scheme().ClipPoint()/math.Sqrt2)
		limit := 2*rounding*step*step*float64(l.D())/cohort + 2e-4*size
		if len(got) != d || diff > limit {
			t.Errorf("%s: squared error %g of %g, limit %g", name, diff, size, limit)
		}
	}
}

// TestCheckSum checks the alarm: the first offender and how many there are.
func TestCheckSum(t *testing.T) {
	l := mustLattice(t, "nf4", 100, 1)
	sum := make([]int64, l.D())
	sum[3], sum[9] = 36, -36
	if err := l.CheckSum(sum, 3); err != nil {
		t.Errorf("sums at the limit: %v", err)
	}
	sum[5], sum[9] = 37, -38
	var alarm *SumRangeError
	err := l.CheckSum(sum, 3)
	if !errors.As(err, &alarm) || !errors.Is(err, ErrRange) {
		t.Fatalf("error is %v", err)
	}
	if *alarm != (SumRangeError{Index: 5, Value: 37, Limit: 36, Survivors: 3, Count: 2}) {
		t.Errorf("alarm is %+v", *alarm)
	}
	clear(sum)
	sum[0] = math.MinInt64
	if err := l.CheckSum(sum, math.MaxInt32); !errors.As(err, &alarm) {
		t.Errorf("smallest integer: %v", err)
	}
	if err := l.CheckSum(sum[1:], 3); !errors.Is(err, ErrLength) {
		t.Errorf("short sum: %v", err)
	}
	if err := l.CheckSum(sum, -1); !errors.Is(err, ErrRange) {
		t.Errorf("negative survivors: %v", err)
	}
}

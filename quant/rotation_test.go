package quant

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestBlockShape(t *testing.T) {
	for _, c := range []struct{ d, r, m int }{
		{1, 64, 1}, {64, 64, 1}, {65, 128, 1}, {100, 128, 1}, {4096, 4096, 1}, {4097, 64, 65}, {8192, 4096, 2},
		{135176, 512, 265}, {139264, 4096, 34}, {3419136, 4096, 835}, {1 << 20, 4096, 256}, {1 << 24, 4096, 4096}, {22713216, 4096, 5546}, {MaxDimension, 4096, maxRows},
	} {
		if r, m := blockShape(c.d); r != c.r || m != c.m {
			t.Errorf("blockShape(%d) = %d, %d, want %d, %d", c.d, r, m, c.r, c.m)
		}
	}
	// The rule itself, on random lengths.
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		d := 1 + rnd.IntN(1<<(1+rnd.IntN(26)))
		r, m := blockShape(d)
		if m > maxRows || m*r < d || (m-1)*r >= d || r < minBlock || r > maxBlock || r&(r-1) != 0 {
			t.Fatalf("blockShape(%d) = %d, %d", d, r, m)
		}
		pad := m*r - d
		for other := maxBlock; other >= minBlock; other /= 2 {
			rows := (d + other - 1) / other
			if rows > maxRows {
				continue
			}
			otherPad := rows*other - d
			if pad*200 > d && (otherPad < pad || otherPad == pad && other > r) {
				t.Fatalf("blockShape(%d) = %d pads %d, %d pads %d", d, r, pad, other, otherPad)
			}
			if other > r && otherPad*200 <= d {
				t.Fatalf("blockShape(%d) = %d, but %d is larger and pads %d", d, r, other, otherPad)
			}
		}
	}
}

// shapes are rotations of every block length, with one, few and many rows.
func shapes() (s [][2]int) {
	for r := minBlock; r <= maxBlock; r *= 2 {
		for _, m := range []int{1, 2, 3, 17, 64} {
			s = append(s, [2]int{r, m})
		}
	}
	return s
}

// TestRotationOrthonormal checks that the rotation keeps inner products and is
// undone by its inverse, for all R.
func TestRotationOrthonormal(t *testing.T) {
	for _, shape := range shapes() {
		r, m := shape[0], shape[1]
		rot, err := newRotation(r, m, [32]byte{byte(r), byte(m)})
		if err != nil {
			t.Fatal(err)
		}
		n := r * m
		x, y := testVector(1, n), testVector(2, n)
		rotate := func(x []float32) []float32 {
			out, tmp := make([]float32, n), append([]float32(nil), x...)
			rot.forward(out, tmp)
			return out
		}
		fx, fy := rotate(x), rotate(y)
		scale := 1 / float64(r)
		size := math.Sqrt(dot(x, x) * dot(y, y))
		for _, p := range [][4][]float32{{x, x, fx, fx}, {x, y, fx, fy}, {y, y, fy, fy}} {
			if diff := math.Abs(dot(p[0], p[1]) - scale*scale*dot(p[2], p[3])); diff > 1e-5*size {
				t.Errorf("R=%d, m=%d: inner product moved by %g of %g", r, m, diff, size)
			}
		}
		back := make([]float32, n)
		rot.inverse(back, fx)
		for i := range back {
			if got := float64(back[i]) * scale * scale; math.Abs(got-float64(x[i])) > 1e-4 {
				t.Fatalf("R=%d, m=%d: value %d comes back as %g, was %g", r, m, i, got, x[i])
			}
		}
	}
}

// TestRotationSpreads checks that sparse and structured vectors come out flat,
// for all R: max/rms is at most 6.5, the bound of a Gaussian vector. With D <=
// 2^18 coordinates a Gaussian vector exceeds it with a chance of 2e-5; seeds
// are fixed, so the test is repeatable. Where m > R a one-hot vector does not
// reach every coordinate; blockShape keeps m/R below 7.
func TestRotationSpreads(t *testing.T) {
	for _, shape := range append(shapes(), [2]int{64, 300}, [2]int{128, 400}, [2]int{512, 265}) {
		r, m := shape[0], shape[1]
		n := r * m
		rot, err := newRotation(r, m, [32]byte{7, byte(r)})
		if err != nil {
			t.Fatal(err)
		}
		inputs := map[string]func(x []float32, rnd *rand.Rand){
			"one-hot": func(x []float32, rnd *rand.Rand) { x[rnd.IntN(n)] = 1 },
			"few-hot": func(x []float32, rnd *rand.Rand) {
				for range 10 {
					x[rnd.IntN(n)] = float32(rnd.NormFloat64())
				}
			},
			"low-rank": func(x []float32, rnd *rand.Rand) {
				for i := range x {
					x[i] = float32(math.Sin(float64(i%37))) * float32(1+i/37%5)
				}
			},
			"constant": func(x []float32, rnd *rand.Rand) {
				for i := range x {
					x[i] = 1
				}
			},
		}
		for name, fill := range inputs {
			x, y := make([]float32, n), make([]float32, n)
			fill(x, rand.New(rand.NewPCG(uint64(r), uint64(m))))
			rot.forward(y, x)
			rms := math.Sqrt(dot(y, y) / float64(n))
			const limit = 6.5
			if got := float64(absMax(y)) / rms; got > limit {
				t.Errorf("R=%d, m=%d: %s has max/rms %.2f, limit %.2f", r, m, name, got, limit)
			}
		}
	}
}

func dot(x, y []float32) (sum float64) {
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum
}

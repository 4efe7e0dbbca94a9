package dp

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// coinOf is the randomness with which every figure is rounded by one coin in [0, 1).
func coinOf(coin float64) *bytes.Reader {
	var b []byte
	for range FigureCount {
		b = binary.LittleEndian.AppendUint64(b, uint64(coin*(1<<53))<<11)
	}
	return bytes.NewReader(b)
}

// The sensitivity by brute force: whatever a unit says, numbers that are none included, and
// however it is rounded, its coordinates' squared norm is within B2, which the worst reaches;
// two sets of units that differ in one have sums that differ by that much at most.
func TestFiguresSensitivity(t *testing.T) {
	said := []float64{math.Inf(-1), -7, -1, -0.5, -1e-9, 0, 0.3, 0.9999, 1, 1.0001, 1e300, math.Inf(1), math.NaN()}
	coins := []float64{0, 0.25, 0.5, 1 - 0x1p-53}
	for _, c := range []FigureCode{{1, 1}, {1, 7}, {3, 1}, {3, 2}, {5, 15}} {
		var worst int64
		at := make([]int, FigureCount)
		for {
			var f Figures
			for k, i := range at {
				f[k] = said[i]
			}
			for _, coin := range coins {
				one := make([]int32, c.Size())
				if err := c.Encode(one, f, coinOf(coin)); err != nil {
					t.Fatal(err)
				}
				norm := int64(0)
				for _, v := range one {
					norm += int64(v) * int64(v)
				}
				worst = max(worst, norm)
				// Adding this unit to what others come to moves the sum by its own vector, no more.
				with, without := make([]int32, c.Size()), make([]int32, c.Size())
				for i := range with {
					with[i], without[i] = int32(i), int32(i)
				}
				if err := AddUnit(with, one, c.B2()); err != nil {
					t.Fatalf("%+v says %v: %v", c, f, err)
				}
				moved := int64(0)
				for i := range with {
					moved += int64(with[i]-without[i]) * int64(with[i]-without[i])
				}
				if moved > c.B2() {
					t.Fatalf("%+v moves by %d, the bound is %d", f, moved, c.B2())
				}
			}
			k := 0
			for ; k < FigureCount; k++ {
				if at[k]++; at[k] < len(said) {
					break
				}
				at[k] = 0
			}
			if k == FigureCount {
				break
			}
		}
		if worst != c.B2() {
			t.Errorf("%+v: the largest squared norm is %d, B2 %d", c, worst, c.B2())
		}
	}
}

// What figures cost the update is what was asked for, and they have all of it.
func TestFigureCodeCost(t *testing.T) {
	for _, b2 := range []int64{100, 5_000, 130_000, 1 << 30} {
		for _, q := range []int32{1, 7, 15, 255} {
			for _, growth := range []float64{0.03, 0.1, 1} {
				c, err := NewFigureCode(b2, q, growth)
				if err != nil {
					if float64(b2)*growth*(2+growth) >= FigureCount {
						t.Errorf("%d, %v: %v", b2, growth, err)
					}
					continue
				}
				got := math.Sqrt(1+float64(c.B2())/float64(b2)) - 1
				if err := c.Check(); err != nil || c.Symbol < 1 || c.Symbol > q || got > growth*(1+1e-9) ||
					got < growth/4.1 && c.Coordinates < MaxFigureCoordinates {
					t.Errorf("b2 %d, symbols to %d, %v: %+v adds %v to the noise, %v", b2, q, growth, c, got, err)
				}
			}
		}
	}
	if _, err := NewFigureCode(10, 7, 0.01); err == nil {
		t.Error("figures without room were taken")
	}
}

// Figures come back as they went in, without bias, within the noise that is told.
func TestFiguresComeBack(t *testing.T) {
	c, rnd := FigureCode{7, 15}, rand.New(rand.NewChaCha8([32]byte{1}))
	source := rand.NewChaCha8([32]byte{2})
	const units, sigma = 2000, 40.0
	inside := 0
	for range 200 {
		sum, one := make([]int64, c.Size()), make([]int32, c.Size())
		var want Figures
		for range units {
			f := Figures{1, rnd.Float64()*2 - 1, 0.25, -1}
			if err := c.Encode(one, f, source); err != nil {
				t.Fatal(err)
			}
			for k, v := range f {
				want[k] += v
			}
			for i, v := range one {
				sum[i] += int64(v)
			}
		}
		for i := range sum {
			sum[i] += int64(math.Round(rnd.NormFloat64() * sigma))
		}
		sums, noise := c.Sums(sum), c.Noise(sigma)
		for k := 1; k < FigureCount; k++ {
			mean, sd, ok := sums.Mean(k, noise)
			if !ok {
				t.Fatal("2000 units are none")
			}
			if math.Abs(mean-want[k]/want[0]) < 2*sd {
				inside++
			}
		}
	}
	// 600 intervals, each of which holds 95 % or more: fewer than 540 in 10^-6 of all tests.
	if inside < 540 {
		t.Errorf("%d of 600 are within two standard deviations", inside)
	}
	var nobody Figures
	if _, _, ok := nobody.Mean(1, 0); ok {
		t.Error("nobody said something")
	}
}

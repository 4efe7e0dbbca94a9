package dp

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTrimmedSum holds it to its definition, written down another way: the sum of
// all, less the largest, as often as it is trimmed, less the smallest.
func TestTrimmedSum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		k, d := 1+rnd.IntN(9), 1+rnd.IntN(40)
		trim := rnd.IntN((k + 1) / 2)
		parts := make([][]int64, k)
		for i := range parts {
			if rnd.IntN(6) == 0 {
				continue // failed: zeros
			}
			parts[i] = make([]int64, d)
			for j := range parts[i] {
				parts[i][j] = rnd.Int64N(9) - 4
			}
		}
		got := make([]int64, d)
		got[0] = 77 // is not added to
		if err := TrimmedSum(got, parts, trim); err != nil {
			t.Fatal(err)
		}
		for j := range got {
			var left []int64
			for _, p := range parts {
				if p == nil {
					left = append(left, 0)
				} else {
					left = append(left, p[j])
				}
			}
			for range trim {
				left = slices.Delete(left, slices.Index(left, slices.Max(left)), slices.Index(left, slices.Max(left))+1)
				left = slices.Delete(left, slices.Index(left, slices.Min(left)), slices.Index(left, slices.Min(left))+1)
			}
			want := int64(0)
			for _, v := range left {
				want += v
			}
			if got[j] != want {
				t.Fatalf("coordinate %d of %v trimmed by %d: %d, want %d", j, parts, trim, got[j], want)
			}
		}
	}
	for _, c := range []struct{ parts, trim int }{{0, 0}, {2, 1}, {4, 2}, {3, -1}} {
		if err := TrimmedSum(make([]int64, 3), make([][]int64, c.parts), c.trim); err == nil {
			t.Errorf("%d parts were trimmed by %d", c.parts, c.trim)
		}
	}
	if err := TrimmedSum(make([]int64, 3), [][]int64{make([]int64, 2)}, 0); err == nil {
		t.Error("a short part was taken")
	}
}

// TestTrimmedSumSensitivity: adding any vector to any one part moves no coordinate by
// more than the vector does, or against it. Small ranges make ties and crossings of
// every kind likely.
func TestTrimmedSumSensitivity(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	attained := 0
	for range 20_000 {
		k := 1 + rnd.IntN(7)
		trim := rnd.IntN((k + 1) / 2)
		parts := make([][]int64, k)
		for i := range parts {
			parts[i] = []int64{rnd.Int64N(11) - 5, rnd.Int64N(2_000_001) - 1_000_000}
		}
		before, after := make([]int64, 2), make([]int64, 2)
		if err := TrimmedSum(before, parts, trim); err != nil {
			t.Fatal(err)
		}
		at, x := rnd.IntN(k), []int64{rnd.Int64N(13) - 6, rnd.Int64N(3_000_001) - 1_500_000}
		for j := range x {
			parts[at][j] += x[j]
		}
		if err := TrimmedSum(after, parts, trim); err != nil {
			t.Fatal(err)
		}
		for j := range x {
			moved := after[j] - before[j]
			if moved*x[j] < 0 || max(moved, -moved) > max(x[j], -x[j]) {
				t.Fatalf("%d of %v moved coordinate %d by %d, trimmed by %d", x[j], parts[at], j, moved, trim)
			}
			if moved == x[j] && trim > 0 && x[j] != 0 {
				attained++
			}
		}
	}
	if attained == 0 {
		t.Error("the bound is never attained: the test does not reach the values in the middle")
	}
}

// TestHostileParts: anyone who holds trim parts cannot bring any coordinate outside of
// what the others' values allow; one part more can.
func TestHostileParts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		k := 3 + rnd.IntN(8)
		trim := 1 + rnd.IntN((k-1)/2)
		parts := make([][]int64, k)
		honest := make([]int64, 0, k)
		for i := range parts {
			v := rnd.Int64N(101) - 50
			if i < trim {
				v = []int64{-1 << 40, 1 << 40}[rnd.IntN(2)]
			} else {
				honest = append(honest, v)
			}
			parts[i] = []int64{v}
		}
		kept := int64(k - 2*trim)
		sum := make([]int64, 1)
		if err := TrimmedSum(sum, parts, trim); err != nil {
			t.Fatal(err)
		}
		if sum[0] > kept*slices.Max(honest) || sum[0] < kept*slices.Min(honest) {
			t.Fatalf("%d of %d parts bring the sum of %d to %d, the others hold %v", trim, k, kept, sum[0], honest)
		}
	}
	sum := make([]int64, 1)
	if err := TrimmedSum(sum, [][]int64{{1 << 40}, {1 << 40}, {3}}, 1); err != nil || sum[0] < 1<<39 {
		t.Errorf("two of three parts: %d, %v", sum[0], err)
	}
}

func BenchmarkTrimmedSum(b *testing.B) {
	parts := make([][]int64, 64)
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range parts {
		parts[i] = make([]int64, 16384)
		for j := range parts[i] {
			parts[i][j] = rnd.Int64N(1000)
		}
	}
	sum := make([]int64, 16384)
	for b.Loop() {
		if err := TrimmedSum(sum, parts, 2); err != nil {
			b.Fatal(err)
		}
	}
}

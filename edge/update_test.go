package edge

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/l2"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/quant"
)

// TestClippedOnce: the lattice alone clips, by the one norm that the count goes
// by too: what was trained stays as it was, and what is sent is within the bound.
func TestClippedOnce(t *testing.T) {
	scheme, err := quant.Lookup("fixed16")
	ok(t, err)
	lattice, err := quant.NewLattice(scheme, 300, 1, [32]byte{1})
	ok(t, err)
	rnd := rand.NewChaCha8([32]byte{2})
	count := dp.CountCode{Coordinates: 4, Symbol: 3}
	for _, c := range []struct{ size, weight float64 }{{0.5, 1}, {0.9999, 1}, {1.001, 1}, {40, 1}, {0.5, 0.5}, {40, 0.25}} {
		size := c.size
		delta := make([]float32, 300)
		for i := range delta {
			delta[i] = float32(size / math.Sqrt(300))
		}
		before := slices.Clone(delta)
		u := newUpdate(contract.Vector{Lattice: lattice, Count: count}, rnd)
		norm, err := u.add(delta, c.weight, nil, 0)
		ok(t, err)
		if !slices.Equal(delta, before) {
			t.Errorf("norm %v: what was trained has changed", size)
		}
		if norm != l2.Norm(before) {
			t.Errorf("norm %v, want %v", norm, l2.Norm(before))
		}
		var sum2 int64
		for _, s := range u.sum[:lattice.D()] {
			sum2 += int64(s) * int64(s)
		}
		if sum2 > lattice.B2() {
			t.Errorf("norm %v: squared norm %d, bound %d", size, sum2, lattice.B2())
		}
		mean, err := lattice.DecodeMean(widen(u.sum[:lattice.D()]), 1)
		ok(t, err)
		if got, want := l2.Norm(mean), c.weight*min(size, 1); math.Abs(got-want) > 0.02 {
			t.Errorf("norm %v of weight %v arrives as %v", size, c.weight, got)
		}
		within := u.sum[lattice.D()] > 0
		if within != (size <= 1) {
			t.Errorf("norm %v counts as within the bound: %v", size, within)
		}
	}
}

// An update counts by its unit's examples, up to the cap, and never more than whole.
func TestWeights(t *testing.T) {
	for _, weight := range []float64{0, -1, 1.0001, math.NaN(), math.Inf(1)} {
		scheme, err := quant.Lookup("fixed16")
		ok(t, err)
		l, err := quant.NewLattice(scheme, 4, 1, [32]byte{1})
		ok(t, err)
		if _, err := newUpdate(contract.Vector{Lattice: l}, rand.NewChaCha8([32]byte{})).add(make([]float32, 4), weight, nil, 0); err == nil {
			t.Errorf("an update of weight %v", weight)
		}
	}
	for examples, want := range map[int]float64{0: 0.125, 1: 0.125, 5: 0.625, 8: 1, 1 << 20: 1} {
		if got := (training.Spec{WeightCap: 8}).Weight(examples); got != want {
			t.Errorf("%d examples of 8 weigh %v, want %v", examples, got, want)
		}
		if got := (training.Spec{}).Weight(examples); got != 1 {
			t.Errorf("%d examples weigh %v where all count alike", examples, got)
		}
	}
}

func widen(x []int32) []int64 {
	out := make([]int64, len(x))
	for i, v := range x {
		out[i] = int64(v)
	}
	return out
}

// TestNormOfWhatIsSent: the squared norm of a unit's integers is held to the bound
// again as they are added, whatever made them.
func TestNormOfWhatIsSent(t *testing.T) {
	scheme, err := quant.Lookup("nf4")
	ok(t, err)
	lattice, err := quant.NewLattice(scheme, 64, 1, [32]byte{1})
	ok(t, err)
	u := newUpdate(contract.Vector{Lattice: lattice}, rand.NewChaCha8([32]byte{2}))
	u.one, u.sum = append(u.one, 0), append(u.sum, 0)
	u.one[len(u.one)-1] = int32(math.Sqrt(float64(lattice.B2()))) + 1
	if _, err := u.add(make([]float32, 64), 1, nil, 0); !errors.Is(err, dp.ErrNorm) {
		t.Errorf("integers beyond the bound were added: %v", err)
	}
	for i, s := range u.sum {
		if s != 0 {
			t.Fatalf("symbol %d of a refused unit is in the sum", i)
		}
	}
}

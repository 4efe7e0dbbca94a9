package accounting

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// TestTrimmingACutThatFollowsTheCohort: why trimming is refused where coins choose. A
// device that comes may have another one cut into another shard; the trimmed sum then
// moves by more than the one that came, which the noise is made for.
func TestTrimmingACutThatFollowsTheCohort(t *testing.T) {
	trimmed := func(parts ...int64) int64 {
		sum, columns := make([]int64, 1), make([][]int64, len(parts))
		for i, p := range parts {
			columns[i] = []int64{p}
		}
		if err := dp.TrimmedSum(sum, columns, 1); err != nil {
			t.Fatal(err)
		}
		return sum[0]
	}
	const x, y = 1, 1 // of the device that comes, and of the one that is cut otherwise for it
	before := trimmed(10, -1, -1)
	if moved := trimmed(10, -1+x, -1) - before; moved > x {
		t.Errorf("in a cut that stands it moves the sum by %d", moved)
	}
	if moved := trimmed(10-y, -1+y+x, -1) - before; moved != 2*x {
		t.Errorf("in a cut that follows it moves the sum by %d, the argument says 2", moved)
	}
}

// TestTrimmingSampledGroups holds docs/privacy/proofs.md, section 5, on trimming with labels
// before the coins: the figures computed outside, where a group one short of its floor
// makes the accounted epsilon wrong, and from what fleet on it does not.
func TestTrimmingSampledGroups(t *testing.T) {
	g := readFloors(t)
	limit := g.Delta * dp.FloorShare
	want := []struct {
		devices   int
		breaks    bool // the exact pair alone has more than was sold
		tolerable bool // the condition holds
	}{{2_400, true, false}, {10_000, false, false}, {50_000, false, true}}
	if len(g.Groups) != len(want) {
		t.Fatalf("%d groups", len(g.Groups))
	}
	for i, w := range want {
		o := g.Groups[i]
		members := o.Devices / o.Groups
		// By logarithms of factorials; above the largest shard the first terms are all.
		chance := func(k int) float64 {
			choose := lgamma(members) - lgamma(k+1) - lgamma(members-k)
			return math.Exp(choose + float64(k)*math.Log(g.Q) + float64(members-1-k)*math.Log1p(-g.Q))
		}
		sum := 0.0
		for k := range g.Floor {
			sum += chance(k)
		}
		for k := o.Size; k < o.Size+50; k++ {
			sum += chance(k)
		}
		delta := g.Q * float64(g.Draws) * sum
		if o.Devices != w.devices || math.Abs(delta/o.Delta-1) > 1e-6 || (delta <= limit) != w.tolerable {
			t.Errorf("%d devices in %d groups: %v, outside %v, limit %v", o.Devices, o.Groups, delta, o.Delta, limit)
		}
		if (o.EpsilonAtLeast > g.Sold+0.01) != w.breaks {
			t.Errorf("%d devices in %d groups deliver at least %v, sold as %v", o.Devices, o.Groups, o.EpsilonAtLeast, g.Sold)
		}
	}
}

func lgamma(n int) float64 {
	v, _ := math.Lgamma(float64(n))
	return v
}

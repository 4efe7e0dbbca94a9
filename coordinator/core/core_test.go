package core

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// givenNoise adds the same known numbers to every sum.
type givenNoise int64

func (g givenNoise) AddNoise(dst []int64, _ dp.Variance) error {
	for i := range dst {
		dst[i] += int64(g)
	}
	return nil
}

// What is public of a round comes from its noisy sum: the next clip norm from the noisy
// count, the model from the noisy symbols. With other noise over the same sum both
// are others, by as much as the noise says.
func TestNoiseIsInAllThatIsReleased(t *testing.T) {
	job := adaptiveJob(20, 3)
	release := func(noise givenNoise) (clip, moved float64) {
		core, err := New(job, tinyBase(t), []byte("0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := core.Draw(dp.PoissonDrawNumbered(20))
		if err != nil {
			t.Fatal(err)
		}
		before := core.Adapter().Slice(d.Rank())
		sum := make([]int64, d.Size())
		if _, clip, err = core.Release(d, sum, 0, false, noise); err != nil {
			t.Fatal(err)
		}
		for i, v := range core.Adapter().Slice(d.Rank()) {
			moved = max(moved, math.Abs(float64(v)-float64(before[i])))
		}
		// By hand: every coordinate of the count is off by the noise.
		count := float64(noise) / (2 * float64(d.Count().Symbol))
		want := d.Lattice().Clip() * math.Exp(-0.2*(count/20))
		if math.Abs(clip/want-1) > 1e-9 {
			t.Errorf("noise %d: the next clip norm is %v, want %v", noise, clip, want)
		}
		return clip, moved
	}
	none, still := release(0)
	some, moved := release(1000)
	if some >= none || still != 0 || moved == 0 {
		t.Errorf("without noise: clip norm %v, moved by %v; with some: %v, %v", none, still, some, moved)
	}
}

// Each round has a rotation and a number of its own.
func TestRoundsAreApart(t *testing.T) {
	core, err := New(tinyJob(20), tinyBase(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	rotations, ids := map[[32]byte]bool{{}: true}, map[uint64]bool{0: true}
	for range 5 {
		d, err := core.Draw(dp.PoissonDrawNumbered(20))
		if err != nil {
			t.Fatal(err)
		}
		if rotations[d.Rotation()] || ids[d.ID()] {
			t.Errorf("round %d with rotation %x was there before", d.ID(), d.Rotation())
		}
		rotations[d.Rotation()], ids[d.ID()] = true, true
	}
}

// Accounts are made with what costs the most of all ranks: the smallest norm bound, the
// most coordinates.
func TestCostliestOfTheRanks(t *testing.T) {
	terms, err := NewTerms(tinyJob(20), tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	costly, err := terms.Costliest()
	if err != nil {
		t.Fatal(err)
	}
	for _, rank := range terms.Ranks() {
		v, err := terms.Vector(rank, 1, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		if v.B2() < costly.B2 || uint64(v.Size()) > costly.Dim {
			t.Errorf("rank %d: bound %d over %d coordinates, the costliest has %d over %d", rank, v.B2(), v.Size(), costly.B2, costly.Dim)
		}
	}
}

// TestAverageOfTheLastRounds: what is shown of a job that averages its last three rounds is
// the mean of what is shown after each of them of the same job without; what rounds start
// from, cost and draw is the same, and a core that is restored between them comes to the same.
func TestAverageOfTheLastRounds(t *testing.T) {
	const rounds, last = 6, 3
	begin := func(average int) *Core {
		job := tinyJob(20)
		job.Rounds, job.Server.Average = rounds, average
		c, err := New(job, tinyBase(t), []byte("0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	plain, averaged := begin(0), begin(last)
	full := plain.t.Method.RMax
	mean := make([]float64, plain.Layout().Size(full))
	for n := 1; n <= rounds; n++ {
		var events [2]dp.Event
		for i, c := range []*Core{plain, averaged} {
			d, err := c.Draw(dp.PoissonDrawNumbered(20))
			if err != nil {
				t.Fatal(err)
			}
			var clip float64
			if events[i], clip, err = c.Release(d, make([]int64, d.Size()), 20, false, givenNoise(1000*n)); err != nil {
				t.Fatal(err)
			}
			c.Commit(clip)
		}
		if events[0] != events[1] {
			t.Fatalf("round %d costs %v, and averaged %v", n, events[0], events[1])
		}
		a, _, errA := plain.Slice(full)
		b, _, errB := averaged.Slice(full)
		if errA != nil || errB != nil || !slices.Equal(a, b) {
			t.Fatalf("after round %d devices start from something else: %v %v", n, errA, errB)
		}
		if n > rounds-last {
			for i, v := range plain.Adapter().Slice(full) {
				mean[i] += float64(v) / last
			}
		}
		s, err := averaged.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		averaged = begin(last)
		if err := averaged.Restore(s); err != nil {
			t.Fatalf("after round %d: %v", n, err)
		}
		if n <= rounds-last+1 && !slices.Equal(plain.Adapter().Slice(full), averaged.Adapter().Slice(full)) {
			t.Errorf("after round %d there is nothing to average", n)
		}
	}
	moved := 0.0
	for i, v := range averaged.Adapter().Slice(full) {
		if math.Abs(float64(v)-mean[i]) > 1e-6*(1+math.Abs(mean[i])) {
			t.Fatalf("value %d is %v, the mean of the last %d rounds %v", i, v, last, mean[i])
		}
		moved = max(moved, math.Abs(float64(v)-float64(plain.Adapter().Slice(full)[i])))
	}
	if moved < 1e-3 {
		t.Errorf("the mean is the last adapter, within %v: this test tests nothing", moved)
	}
}

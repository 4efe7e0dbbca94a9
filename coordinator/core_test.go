package coordinator

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
		core, err := NewCore(job, tinyBase(t), []byte("0123456789abcdef"))
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
	core, err := NewCore(tinyJob(20), tinyBase(t), nil)
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
	terms, err := newTerms(tinyJob(20), tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	costly, err := terms.costliest()
	if err != nil {
		t.Fatal(err)
	}
	for _, rank := range terms.ranks() {
		v, err := terms.vector(rank, 1, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		if v.B2() < costly.B2 || uint64(v.Size()) > costly.Dim {
			t.Errorf("rank %d: bound %d over %d coordinates, the costliest has %d over %d", rank, v.B2(), v.Size(), costly.B2, costly.Dim)
		}
	}
}

// Draws end with what the floors' part of delta is made for, whatever the budget has
// left.
func TestDrawsEnd(t *testing.T) {
	terms, err := newTerms(sampledJob(100, 8), tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAccounts(terms, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.work.Wait()
	terms.budget.Epsilon = math.Inf(1)
	next := a.costly
	for n, ok := range map[int]bool{1: true, terms.draws(): true, terms.draws() + 1: false, 2 * terms.draws(): false} {
		if err := a.allow(make([]dp.Event, n-1), next); (err == nil) != ok {
			t.Errorf("draw %d of %d: %v", n, terms.draws(), err)
		}
	}
}

// Who is excluded leaves the population once: at the third strike, or at once where
// it is proven.
func TestExclusionCounts(t *testing.T) {
	c, err := New(Config{Job: tinyJob(4), Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range 3 {
		id := [32]byte{byte(i + 1)}
		if _, err := c.store.Enrol(id, 0); err != nil {
			t.Fatal(err)
		}
		c.addDevice(id)
	}
	devices := c.fleet.All()
	slow, proven := devices[0], devices[1]
	for n := 1; n <= maxStrikes; n++ {
		if slow.Out || slow.Excluded || c.fleet.Active() != 3 {
			t.Errorf("excluded after %d strikes, %d active", n-1, c.fleet.Active())
		}
		c.strike(slow, uint64(n), "slow", false)
	}
	if !slow.Out || !slow.Excluded || c.fleet.Active() != 2 {
		t.Errorf("after %d strikes: %+v, %d active", maxStrikes, slow.Standing, c.fleet.Active())
	}
	c.strike(slow, 9, "slow", true)
	if c.fleet.Active() != 2 {
		t.Errorf("it left twice: %d active", c.fleet.Active())
	}
	if c.strike(proven, 1, "garbage", true); !proven.Out || !proven.Excluded || c.fleet.Active() != 1 {
		t.Errorf("proven: %+v, %d active", proven.Standing, c.fleet.Active())
	}
	if devices[2].Out || c.broken != nil {
		t.Errorf("%+v, %v", devices[2], c.broken)
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
		c, err := NewCore(job, tinyBase(t), []byte("0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	plain, averaged := begin(0), begin(last)
	full := plain.t.method.RMax
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

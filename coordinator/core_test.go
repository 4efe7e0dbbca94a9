package coordinator

import (
	"math"
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
		d, err := core.Draw(Coins(dp.Numbered(20)))
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
		d, err := core.Draw(Coins(dp.Numbered(20)))
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
	devices := []*device{{id: [32]byte{1}}, {id: [32]byte{2}}, {id: [32]byte{3}}}
	for _, d := range devices {
		if _, err := c.store.Enrol(d.id, 0); err != nil {
			t.Fatal(err)
		}
	}
	c.active = 3
	slow, proven := devices[0], devices[1]
	for n := 1; n <= maxStrikes; n++ {
		if slow.out || slow.excluded || c.active != 3 {
			t.Errorf("excluded after %d strikes, %d active", n-1, c.active)
		}
		c.strike(slow, uint64(n), "slow", false)
	}
	if !slow.out || !slow.excluded || c.active != 2 {
		t.Errorf("after %d strikes: %+v, %d active", maxStrikes, slow.standing, c.active)
	}
	c.strike(slow, 9, "slow", true)
	if c.active != 2 {
		t.Errorf("it left twice: %d active", c.active)
	}
	if c.strike(proven, 1, "garbage", true); !proven.out || !proven.excluded || c.active != 1 {
		t.Errorf("proven: %+v, %d active", proven.standing, c.active)
	}
	if devices[2].out || c.broken != nil {
		t.Errorf("%+v, %v", devices[2], c.broken)
	}
}

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
		if _, clip, err = core.Release(d, sum, false, noise); err != nil {
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

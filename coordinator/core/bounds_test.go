package core

import (
	"errors"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/model"
)

// Whatever noise carries the adapter to, what each round begins with is within the bounds that devices
// check, at every rank, and so is what a core takes over that was left by a build without bounds.
func TestEveryRoundBeginsWithinBounds(t *testing.T) {
	job := tinyJob(20)
	job.Rounds, job.Bounds.B, job.Bounds.Head, job.Bounds.Bias = 40, 1, 1, 0.5
	core, err := New(job, tinyBase(t), []byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	within := func(a *model.Adapter) error {
		var errs []error
		for _, rank := range core.t.Ranks() {
			errs = append(errs, contract.CheckStart(core.t.Layout, rank, a.Slice(rank), core.t.startBounds()))
		}
		return errors.Join(errs...)
	}
	for n := 1; n <= job.Rounds; n++ {
		d, err := core.Draw(dp.PoissonDrawNumbered(20))
		if err != nil {
			t.Fatal(err)
		}
		_, clip, err := core.Release(d, make([]int64, d.Size()), 20, false, givenNoise(1000))
		if err != nil {
			t.Fatal(err)
		}
		core.Commit(clip)
		if err := within(core.adapter); err != nil {
			t.Fatalf("after round %d: %v", n, err)
		}
	}
	wide := model.NewAdapter(core.t.Layout, 1)
	values := wide.Slice(3)
	for i := range values {
		values[i] = 50
	}
	if err := wide.SetSlice(3, values); err != nil {
		t.Fatal(err)
	}
	encoded, err := model.EncodeAdapter(wide)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.restore(3, 1, encoded, core.optimizerState()); err != nil || within(core.adapter) != nil {
		t.Errorf("restored: %v, %v", err, within(core.adapter))
	}
	if err := core.StartFrom(wide); err == nil || !strings.Contains(err.Error(), "adapter.start") || !strings.Contains(err.Error(), "bounds.") {
		t.Errorf("a start beyond the bounds: %v", err)
	}
}

package coordinator

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/model"
)

// A job that begins with an adapter announces its values, not a seed; which one it was
// is part of what the store knows the job by, and a restart is the same job.
func TestStartIsAnnouncedAndBound(t *testing.T) {
	base, job := tinyBase(t), tinyJob(4)
	lay, err := model.NewLayout(base.Config, model.Method{RMax: 2, Alpha: 3}, 2)
	if err != nil {
		t.Fatal(err)
	}
	made := func(x float64) *model.Adapter {
		a := model.NewAdapter(lay, 1)
		v := a.Slice(2)
		for i := range v {
			v[i] = float32(math.Cos(x * float64(i)))
		}
		if err := a.SetSlice(2, v); err != nil {
			t.Fatal(err)
		}
		return a
	}
	open := func(start *model.Adapter) (*core.Core, [32]byte) {
		c, err := core.New(job, base, nil)
		if err != nil {
			t.Fatal(err)
		}
		if start != nil {
			if err := c.StartFrom(start); err != nil {
				t.Fatal(err)
			}
		}
		sum, err := digest(c.Terms(), true)
		if err != nil {
			t.Fatal(err)
		}
		return c, sum
	}
	fresh, none := open(nil)
	if msg, _, err := fresh.Slice(3); err != nil || msg != nil {
		t.Errorf("a fresh adapter is announced with %d bytes, %v", len(msg), err)
	}
	c, one := open(made(1))
	msg, values, err := c.Slice(3)
	if err != nil || msg == nil || slices.Equal(values, fresh.Adapter().Slice(3)) {
		t.Errorf("a start is announced with %d bytes, %v", len(msg), err)
	}
	if _, again := open(made(1)); again != one {
		t.Error("the same start is another job after a restart")
	}
	if _, two := open(made(2)); two == one || one == none {
		t.Error("the start is not bound into the job")
	}
	large, err := model.NewLayout(base.Config, model.Method{RMax: 4, Alpha: 3}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.StartFrom(model.NewAdapter(large, 1)); err == nil {
		t.Error("a start of a rank beyond rank_max was taken")
	}
}

package program

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// deep is a job over a small base of many layers, with its recipe.
func deep(t *testing.T, layers int, method string) (j job.Job, b *model.Base, recipe []byte) {
	t.Helper()
	text := tiny.Base(t, 8, 1, 8).Tokenizer
	c := model.BERT(tiny.Base(t, 16, 2, 8).Config.VocabSize, 16, layers, 2, 8)
	c.IntermediateSize = 16
	b = tiny.Filled(t, c, 20, text)
	j = job.Default()
	j.Name, j.Labels, j.Adapter.Method, j.Adapter.Sequence = "deep", []string{"one", "two"}, method, 8
	j = j.Derived().ForBase(b.Config)
	recipe, err := Recipe(j)
	if err != nil {
		t.Fatal(err)
	}
	return j, b, recipe
}

// A base of 128 layers has a megabyte, and a program that takes seconds to make again: it
// is not begun where that is more than the owner gives, and ends when the device leaves.
func TestHostileDeepBase(t *testing.T) {
	j, b, recipe := deep(t, 128, "full")
	takes, err := Work(j, b, 8)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = Remake(t.Context(), takes/2, j.Name, j.Labels, recipe, b, 8, Hosts[0])
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrWork) {
		t.Errorf("with half of the work that it takes: %v", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 { // the layout's names; the graph alone has 50 MB
		t.Errorf("%d KiB were taken before it was refused", got>>10)
	}
	leaving := &countdown{Context: t.Context(), left: 100}
	if _, err := Remake(leaving, takes, j.Name, j.Labels, recipe, b, 8, Hosts[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("a device that leaves: %v", err)
	}
	if leaving.after > 1 {
		t.Errorf("it was asked %d times more", leaving.after)
	}
	if _, err := Remake(t.Context(), math.NaN(), j.Name, j.Labels, recipe, b, 8, Hosts[0]); !errors.Is(err, ErrWork) {
		t.Errorf("a limit that is not a number: %v", err)
	}
}

// countdown is a context that ends when it has been asked so many times.
type countdown struct {
	context.Context
	left, after int
}

func (c *countdown) Err() error {
	if c.left--; c.left >= 0 {
		return nil
	}
	if c.left < -1 {
		c.after++
	}
	return context.Canceled
}

// What compiling takes grows with the layers, not with their square or worse: where many
// tensors of one shape are trained, loops were tried over all of them, then all but one,
// and so on (BitFit over 32 layers took 203 s).
func TestCompilingGrowsWithTheLayers(t *testing.T) {
	for _, method := range []string{"bitfit", "full", "lora"} {
		took := map[int]float64{}
		for _, layers := range []int{4, 16} {
			j, b, _ := deep(t, layers, method)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := Step(Spec{Job: j, Base: b, Rank: 2, Host: Hosts[0]}); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			took[layers] = float64(after.TotalAlloc - before.TotalAlloc)
		}
		t.Logf("%s: %.0f and %.0f MB", method, took[4]/1e6, took[16]/1e6)
		if took[16] > 8*took[4] {
			t.Errorf("%s: 16 layers take %.1f times what 4 do", method, took[16]/took[4])
		}
	}
}

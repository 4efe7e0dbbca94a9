package contract

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
)

func layouts(t *testing.T) map[string]*model.Layout {
	out := map[string]*model.Layout{}
	for _, kind := range []string{"lora", "full", "bitfit", "adapter", "compacter", "head"} {
		m := model.Method{RMax: 4, Alpha: 4}
		if kind != "lora" {
			m.Kind = model.MethodKind(kind)
		}
		if kind == "compacter" {
			m.Bottleneck, m.Blocks = 4, 2
		}
		l, err := model.NewLayout(tiny.Base(t, 16, 2, 8).Config, m, 3)
		if err != nil {
			t.Fatal(kind, err)
		}
		out[kind] = l
	}
	return out
}

// A fresh adapter is within the published bounds at every rank, of every method.
func TestFreshStartsAreWithinBounds(t *testing.T) {
	for name, l := range layouts(t) {
		for _, rank := range []int{0, 1, 4} {
			if err := CheckStart(l, rank, model.NewAdapter(l, 7).Slice(rank), StartBounds()); err != nil {
				t.Errorf("%s at rank %d: %v", name, rank, err)
			}
		}
	}
}

// Whatever stands in one tensor of whatever kind is refused by the tensor's name and its bound's
// where it is beyond that, and where it is not finite.
func TestHostileStarts(t *testing.T) {
	for name, l := range layouts(t) {
		rank := l.Method.RMax
		fresh := model.NewAdapter(l, 7).Slice(rank)
		for _, s := range l.Spans(rank) {
			if s.Len == 0 {
				continue
			}
			for what, x := range map[string]float32{"beyond": 1e4, "negative": -1e4, "not a number": float32(math.NaN()), "infinite": float32(math.Inf(1))} {
				start := append([]float32(nil), fresh...)
				start[s.Offset+s.Len-1] = x
				err := CheckStart(l, rank, start, StartBounds())
				var beyond *StartError
				if !errors.As(err, &beyond) || beyond.Tensor != s.Name || !strings.Contains(err.Error(), "bounds."+beyond.Key) {
					t.Errorf("%s, %s %s: %v", name, s.Name, what, err)
				}
			}
		}
	}
}

// The bound on a factor B is one on its effect: what a large alpha adds is taken off it.
func TestHostileScale(t *testing.T) {
	for _, alpha := range []float64{4, 400} {
		l, err := model.NewLayout(tiny.Base(t, 16, 2, 8).Config, model.Method{RMax: 4, Alpha: alpha}, 3)
		if err != nil {
			t.Fatal(err)
		}
		start := model.NewAdapter(l, 7).Slice(4)
		for _, s := range l.Spans(4) {
			if s.Kind == model.KindB {
				start[s.Offset] = 1
			}
		}
		if err := CheckStart(l, 4, start, StartBounds()); (err != nil) != (alpha > 160) {
			t.Errorf("alpha %v: %v", alpha, err)
		}
	}
}

// What an honest coordinator projects passes every device's check, at every rank and after the
// rounding of bf16, and is left alone by a second projection; what is within the bounds is not touched.
func TestProjectedStartsPass(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, l := range layouts(t) {
		rank := l.Method.RMax
		for _, scale := range []float64{1e-3, 1, 1000, 1e6} {
			a := model.NewAdapter(l, 3)
			start := a.Slice(rank)
			for i := range start {
				start[i] += float32(scale * rng.NormFloat64())
			}
			before := append([]float32(nil), start...)
			moved := ProjectStart(l, rank, start, StartBounds())
			if within := CheckStart(l, rank, before, StartBounds()) == nil; scale == 1e-3 && (moved || !within) || scale >= 1000 && !moved {
				t.Errorf("%s, deviation %v: moved %v, was within %v", name, scale, moved, within)
			}
			if ProjectStart(l, rank, start, StartBounds()) {
				t.Errorf("%s, deviation %v: projected twice", name, scale)
			}
			if err := a.SetSlice(rank, start); err != nil {
				t.Fatal(err)
			}
			for _, b := range []int{1, rank} {
				slice := a.Slice(b)
				for i := range slice { // bf16 keeps 8 bits, and may round each up
					slice[i] = math.Float32frombits((math.Float32bits(slice[i]) + 0xffff) &^ 0xffff)
				}
				if err := CheckStart(l, b, slice, StartBounds()); err != nil {
					t.Errorf("%s, deviation %v, rank %d: %v", name, scale, b, err)
				}
			}
		}
	}
}

// A start that reaches a share of each bound reaches no other, and CheckStart takes it up to the bound itself: what a
// simulation tells of an honest job is what devices would say.
func TestReach(t *testing.T) {
	for name, l := range layouts(t) {
		rank := l.Method.RMax
		start := model.NewAdapter(l, 7).Slice(rank)
		fresh := Reach(l, rank, start, StartBounds())
		for _, s := range l.Spans(rank) {
			if s.Len == 0 {
				continue
			}
			most := limitOf(l, s, StartBounds())
			for _, share := range []float64{0.5, 0.999, 1.001} {
				one := append([]float32(nil), start...)
				clear(one[s.Offset : s.Offset+s.Len])
				one[s.Offset+s.Len-1] = float32(share * most.most)
				got, was := Reach(l, rank, one, StartBounds()), fresh
				for i, part := range PartsOf(&got) {
					want := *PartsOf(&was)[i].Most
					if part.Key == most.key {
						want = max(share, min(want, *part.Most))
					} else {
						want = min(want, *part.Most) // the tensor's own part is gone
					}
					if math.Abs(*part.Most-want) > 1e-4 {
						t.Errorf("%s, %s at %v of bounds.%s: bounds.%s is reached to %v, want %v", name, s.Name, share, most.key, part.Key, *part.Most, want)
					}
				}
				if err := CheckStart(l, rank, one, StartBounds()); (err != nil) != (share > 1) {
					t.Errorf("%s, %s at %v: %v", name, s.Name, share, err)
				}
			}
		}
	}
}

// What is not announced is the published bound: nothing is gained by leaving it out.
func TestHostileMissingBounds(t *testing.T) {
	if b := Bounds(wire.Bounds{}); b != StartBounds() {
		t.Errorf("%+v", b)
	}
	if b := Bounds(wire.Bounds{B: 3}); b.B != 3 || b.Head != StartBounds().Head {
		t.Errorf("%+v", b)
	}
}

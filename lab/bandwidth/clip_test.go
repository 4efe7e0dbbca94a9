package bandwidth

import (
	"errors"
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/l2"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		x    []float32
		norm float64
	}{
		{[]float32{3, 4}, 1}, {[]float32{3, 4}, 5}, {[]float32{3, 4}, 100}, {[]float32{0, 0, 0}, 1}, {nil, 1},
		{[]float32{math.MaxFloat32, math.MaxFloat32, -math.MaxFloat32}, 1},
		{[]float32{1e-38, 1e-38}, 1e-39}, {[]float32{1e-45, 1e-45, 1e-45}, 1e-45}, {[]float32{1, 1e-20, 1e20}, 1e-30},
	} {
		x := append([]float32(nil), c.x...)
		want := 0.0
		for _, v := range c.x {
			want += float64(v) * float64(v)
		}
		before, err := clip(x, c.norm)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(before-math.Sqrt(want)) > 1e-12*before {
			t.Errorf("%v: norm before %v, want %v", c.x, before, math.Sqrt(want))
		}
		after := 0.0
		for i, v := range x {
			after += float64(v) * float64(v)
			if before <= c.norm*clipSlack && v != c.x[i] {
				t.Errorf("%v within %v was changed to %v", c.x, c.norm, x)
			}
		}
		if math.Sqrt(after) > c.norm*clipSlack {
			t.Errorf("%v clipped to %v has norm %v, limit %v", c.x, c.norm, math.Sqrt(after), c.norm*clipSlack)
		}
		if before > 2*c.norm && c.norm > 1e-30 && math.Sqrt(after) < c.norm*0.9999 {
			t.Errorf("%v clipped to %v lost more than it had to: %v", c.x, c.norm, math.Sqrt(after))
		}
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		x := []float32{100, bad, 100}
		if _, err := clip(x, 1); !errors.Is(err, errNotFinite) || x[0] != 100 {
			t.Errorf("%v: error %v, vector %v", bad, err, x)
		}
	}
	for _, norm := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := clip([]float32{1}, norm); err == nil {
			t.Errorf("norm %v was accepted", norm)
		}
	}
}

// Bug: every slice is clipped by itself.
func TestClipPerSlice(t *testing.T) {
	const slices, norm = 8, 1.0
	check := func(clip func(x []float32)) bool {
		x := make([]float32, 8*100)
		for i := range x {
			x[i] = 5
		}
		clip(x)
		return l2.Norm(x) <= norm
	}
	if !check(func(x []float32) { clip(x, norm) }) {
		t.Error("one clip over the concatenated update leaves it above the norm")
	}
	if check(func(x []float32) {
		for i := range slices {
			clip(x[100*i:100*(i+1)], norm)
		}
	}) {
		t.Error("clipping per slice was not noticed")
	}
	// What it would cost: sensitivity sqrt(8)*S under noise meant for S.
	z, err := accounting.CalibrateNoise(2, 1e-6, 0.01, 200, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	g, err := accounting.Epsilon([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: z / math.Sqrt(slices)}, 200)}, 1e-6, dp.Tight)
	if err != nil || g.Epsilon < 15 {
		t.Errorf("eight slices under noise for one: %v, %v", g, err)
	}
}

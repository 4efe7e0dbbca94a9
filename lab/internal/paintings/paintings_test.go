package paintings

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

// Paintings follow from the seed; a split has others by the same artists, who can be told
// apart by their colours, though not every time.
func TestPaintings(t *testing.T) {
	c := Config{Seed: 3, Split: "train", Artists: 23, Each: 6, Minor: 2, Side: 24}
	train, err := Generate(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Generate(c)
	if err != nil || !slices.Equal(train.Examples[7].Image.Pixels, again.Examples[7].Image.Pixels) {
		t.Errorf("the same seed, another painting: %v", err)
	}
	c.Split = "test"
	test, err := Generate(c)
	if err != nil || slices.Equal(train.Examples[0].Image.Pixels, test.Examples[0].Image.Pixels) {
		t.Errorf("the other split has the same painting: %v", err)
	}
	count := make([]int, 25)
	for _, e := range train.Examples {
		count[e.Label]++
		if err := e.Image.Check(); err != nil || slices.Min(e.Image.Pixels) < 0 || slices.Max(e.Image.Pixels) > 1 {
			t.Fatal("pixels: ", err)
		}
	}
	if len(train.Labels) != 25 || slices.Min(count[:23]) < 6 || slices.Max(count) > 12 || count[23] != 2 || count[24] != 2 {
		t.Errorf("paintings of %d artists: %v", len(train.Labels), count)
	}
	right := 0
	for _, e := range test.Examples {
		best, label := math.Inf(1), -1
		for _, o := range train.Examples {
			if d := apart(e.Image, o.Image); d < best {
				best, label = d, o.Label
			}
		}
		if label == e.Label {
			right++
		}
	}
	if share := float64(right) / float64(len(test.Examples)); share < 0.25 || share > 0.97 {
		t.Errorf("the nearest painting by its colours has the same artist in %.0f %%", 100*share)
	}
	for _, bad := range []Config{{Artists: 1, Each: 9, Side: 32}, {Artists: 2, Each: 1, Side: 32}, {Artists: 2, Each: 9, Side: 4}, {Artists: 2, Minor: 5000, Each: 9, Side: 32}} {
		if _, err := Generate(bad); err == nil {
			t.Errorf("%+v was painted", bad)
		}
	}
}

// apart is how far two paintings' mean colours and their spreads are.
func apart(a, b *dataset.Image) (d float64) {
	features := func(m *dataset.Image) (f []float64) {
		n := m.Width * m.Height
		for c := range 3 {
			sum, sq := 0.0, 0.0
			for _, v := range m.Pixels[c*n : c*n+n] {
				sum, sq = sum+float64(v), sq+float64(v)*float64(v)
			}
			mean := sum / float64(n)
			f = append(f, mean, math.Sqrt(max(0, sq/float64(n)-mean*mean)))
		}
		return f
	}
	x, y := features(a), features(b)
	for i := range x {
		d += (x[i] - y[i]) * (x[i] - y[i])
	}
	return d
}

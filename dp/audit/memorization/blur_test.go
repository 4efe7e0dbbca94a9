package memorization

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

// noisy is a page of random levels.
func noisy(w, h, channels int) *dataset.Image {
	rng := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	m := &dataset.Image{Width: w, Height: h, Channels: channels, Pixels: make([]float32, w*h*channels)}
	for i := range m.Pixels {
		m.Pixels[i] = float32(rng.IntN(2))
	}
	return m
}

// Where the answer's words stand a page is blurred, elsewhere not a pixel changes; the page itself stays as it is, and is read
// only once the redacted one is.
func TestRedactBlursPictures(t *testing.T) {
	page := noisy(120, 90, 3)
	before := slices.Clone(page.Pixels)
	read := 0
	e := dataset.Example{Words: []string{"From", "Acme", "of", "Berlin"}, Answers: []string{"Acme"},
		Boxes: [][4]uint16{{0, 0, 200, 100}, {300, 101, 1000, 332}, {0, 500, 999, 600}, {500, 900, 1000, 1000}},
		Image: dataset.Deferred(func() (*dataset.Image, error) { read++; return page, nil })}
	got, found, left := Redact(e, e.Answers)
	if !found || !left || read != 0 {
		t.Fatalf("found %v, left %v, the page was read %d times", found, left, read)
	}
	m, err := got.Image.Decoded()
	if err != nil || m.Width != 120 || m.Height != 90 || m.Channels != 3 || !slices.Equal(page.Pixels, before) {
		t.Fatalf("%+v, %v", m, err)
	}
	for c := range 3 {
		for y := range 90 {
			for x := range 120 {
				at := (c*90+y)*120 + x
				inside := x >= 36 && y >= 9 && y < 30 // outward to whole pixels
				if v := m.Pixels[at]; inside && (v < 0.25 || v > 0.75) || !inside && v != before[at] {
					t.Fatalf("channel %d, pixel %d, %d is %v, was %v", c, x, y, v, before[at])
				}
			}
		}
	}
	if got, _, _ = Redact(e, []string{"nobody"}); got.Image != e.Image {
		t.Error("a page is blurred where nothing was removed")
	}
	// What nobody knows the place of would still be seen.
	bare := e
	bare.Boxes = nil
	if _, found, left = Redact(bare, e.Answers); !found || left {
		t.Errorf("without boxes: found %v, left %v", found, left)
	}
	e.Image = dataset.Deferred(func() (*dataset.Image, error) { return nil, errors.New("gone") })
	got, _, _ = Redact(e, e.Answers)
	if _, err := got.Image.Decoded(); err == nil {
		t.Error("a page that cannot be read is blurred")
	}
}

// Away from edges three means are nearly the Gaussian, and nowhere sharper; what is smaller than a deviation becomes one grey.
func TestBlurIsGaussian(t *testing.T) {
	const n = 601
	line := &dataset.Image{Width: n, Height: 1, Channels: 1, Pixels: make([]float32, n)}
	line.Pixels[n/2] = 1
	blur(line.Pixels, n, n, 1)
	for i, v := range line.Pixels {
		d := float64(i-n/2) / leastBlur
		if want := math.Exp(-d*d/2) / (leastBlur * math.Sqrt(2*math.Pi)); math.Abs(float64(v)-want) > 0.002 || i == n/2 && float64(v) > want {
			t.Errorf("pixel %d is %v, want %v", i, v, want)
		}
	}
	word := noisy(30, 60, 1)
	blur(word.Pixels, 30, 30, 60)
	if spread := slices.Max(word.Pixels) - slices.Min(word.Pixels); spread > 0.02 {
		t.Errorf("levels of a blurred word differ by %v", spread)
	}
}

// Boxes and pages of any size are within each other.
func FuzzBlur(f *testing.F) {
	f.Add(uint8(3), uint8(4), uint16(0), uint16(1000), uint16(999), uint16(1000))
	f.Fuzz(func(t *testing.T, w, h uint8, left, top, right, bottom uint16) {
		at := func(x uint16) uint16 { return x % (dataset.PageSide + 1) }
		box := [4]uint16{min(at(left), at(right)), min(at(top), at(bottom)), max(at(left), at(right)), max(at(top), at(bottom))}
		m := noisy(int(w)+1, int(h)+1, 1)
		out, err := blurred(m, [][4]uint16{box}).Decoded()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range out.Pixels {
			if !(v >= -1e-6 && v <= 1+1e-6) {
				t.Fatalf("box %v of %d x %d: %v", box, m.Width, m.Height, v)
			}
		}
	})
}

// Of boxes in others the others are enough, whatever their order.
func TestOuterBoxes(t *testing.T) {
	page, word, other := [4]uint16{0, 0, 1000, 1000}, [4]uint16{10, 10, 60, 20}, [4]uint16{40, 10, 90, 20}
	for _, c := range []struct{ boxes, want [][4]uint16 }{
		{[][4]uint16{word, other, word}, [][4]uint16{word, other}},
		{[][4]uint16{word, page, other, page}, [][4]uint16{page}},
		{nil, nil},
	} {
		if got := outer(c.boxes); !slices.Equal(got, c.want) {
			t.Errorf("%v gives %v", c.boxes, got)
		}
	}
}

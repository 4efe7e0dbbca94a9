// Package paintings generates paintings of artists, labelled, as WikiArt has them.
package paintings

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/leaf/seeded"
)

// Config is what a set of generated paintings is made from.
type Config struct {
	Seed    uint64
	Split   string // another split has other paintings by the same artists
	Artists int    // each with at least Each paintings
	Each    int
	Minor   int // further artists, with a third as many each
	Side    int // of a painting, in pixels
}

// Limits of generated paintings.
const (
	maxArtists      = 1000
	maxPaintings    = 1 << 20
	leastPaintSide  = 8
	mostPaintSide   = 512
	paintingColours = 5
)

// check names the first setting that is out of range.
func (c Config) check() error {
	switch {
	case c.Artists < 2 || c.Minor < 0 || c.Artists+c.Minor > maxArtists:
		return fmt.Errorf("dataset: %d artists and %d minor ones: want at least 2, and %d in all at most", c.Artists, c.Minor, maxArtists)
	case c.Each < 3 || c.Each > maxPaintings/(2*maxArtists):
		return fmt.Errorf("dataset: %d paintings of an artist: want 3 to %d", c.Each, maxPaintings/(2*maxArtists))
	case c.Side < leastPaintSide || c.Side > mostPaintSide:
		return fmt.Errorf("dataset: paintings of %d pixels a side: want %d to %d", c.Side, leastPaintSide, mostPaintSide)
	}
	return nil
}

// artist is a way to paint.
type artist struct {
	palette      [paintingColours][3]float64
	angle, swirl float64 // of strokes, and how much it turns over the painting
	length, wide float64 // of strokes, as shares of the side
	strokes      int
	grain        float64 // of the canvas
	weave        float64 // of the canvas, in threads a side
	dark         float64 // towards the edges
}

// Generate makes labelled paintings as WikiArt has them: each artist has a palette, a
// stroke and a canvas of its own, which its paintings vary; two artists may share much of
// one of the three. An artist has from Each up to twice as many.
func Generate(c Config) (*dataset.Set, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	name := binary.LittleEndian.Uint64([]byte("painting"))
	people := seeded.Source(c.Seed, name)
	set := &dataset.Set{Name: "paintings"}
	digits := len(strconv.Itoa(c.Artists + c.Minor))
	for i := range c.Artists + c.Minor {
		a := newArtist(people)
		rng := seeded.Source(c.Seed, name, uint64(crc32.ChecksumIEEE([]byte(c.Split))), uint64(i+1))
		n := c.Each + people.IntN(c.Each+1)
		if i >= c.Artists {
			n = c.Each / 3
		}
		set.Labels = append(set.Labels, fmt.Sprintf("artist-%0*d", digits, i+1))
		for range n {
			set.Examples = append(set.Examples, dataset.Example{Label: i, Image: a.paint(rng, c.Side)})
		}
	}
	return set, nil
}

func newArtist(rng *rand.Rand) *artist {
	a := &artist{
		angle: math.Pi * rng.Float64(), swirl: 2 * rng.NormFloat64(),
		length: 0.05 + 0.35*rng.Float64(), wide: 0.02 + 0.08*rng.Float64(), strokes: 30 + rng.IntN(120),
		grain: 0.02 + 0.08*rng.Float64(), weave: 4 + 20*rng.Float64(), dark: 0.5 * rng.Float64(),
	}
	hue, spread, value := rng.Float64(), 0.05+0.25*rng.Float64(), 0.35+0.5*rng.Float64()
	for k := range a.palette {
		a.palette[k] = colour(hue+spread*rng.NormFloat64(), 0.2+0.7*rng.Float64(), value+0.2*rng.NormFloat64())
	}
	return a
}

// colour is red, green and blue of hue, saturation and value.
func colour(h, s, v float64) (c [3]float64) {
	v = min(max(v, 0.05), 1)
	for i, shift := range [3]float64{0, 1. / 3, 2. / 3} {
		_, at := math.Modf(h - shift + 10)
		d := math.Abs(at-0.5) * 2 // 1 if the hue is this primary's
		c[i] = v * (1 - s*min(max(1.5*(1-d), 0), 1))
	}
	return c
}

// paint makes one painting.
func (a *artist) paint(rng *rand.Rand, side int) *dataset.Image {
	m := &dataset.Image{Width: side, Height: side, Channels: 3, Pixels: make([]float32, side*side*3)}
	n := side * side
	light := 1 + 0.12*rng.NormFloat64()
	ground, second := a.palette[rng.IntN(paintingColours)], a.palette[rng.IntN(paintingColours)]
	put := func(x, y int, c [3]float64, opacity float64) {
		for k, v := range c {
			at := k*n + y*side + x
			m.Pixels[at] += float32(opacity * (v - float64(m.Pixels[at])))
		}
	}
	for i := range n {
		x, y := i%side, i/side
		put(x, y, ground, 1)
		put(x, y, second, float64(y)/float64(side))
	}
	turn := 0.3 * rng.NormFloat64()
	for range a.strokes {
		c := a.palette[rng.IntN(paintingColours)]
		x, y := rng.Float64(), rng.Float64()
		angle := a.angle + turn + a.swirl*(x-0.5) + 0.2*rng.NormFloat64()
		length, radius := a.length*(0.5+rng.Float64()), max(a.wide*(0.5+rng.Float64())*float64(side)/2, 0.4)
		steps := max(2, int(2*length*float64(side)))
		for s := range steps {
			along := length * (float64(s)/float64(steps) - 0.5)
			px, py := (x+along*math.Cos(angle))*float64(side), (y+along*math.Sin(angle))*float64(side)
			for by := int(py - radius); by <= int(py+radius); by++ {
				for bx := int(px - radius); bx <= int(px+radius); bx++ {
					if bx >= 0 && by >= 0 && bx < side && by < side {
						put(bx, by, c, 0.35)
					}
				}
			}
		}
	}
	phase := rng.Float64()
	for i := range n {
		x, y := float64(i%side)/float64(side), float64(i/side)/float64(side)
		texture := 1 + a.grain*(math.Sin(2*math.Pi*(a.weave*x+phase))*math.Sin(2*math.Pi*(a.weave*y+phase))+0.5*rng.NormFloat64())
		edge := 1 - a.dark*2*((x-0.5)*(x-0.5)+(y-0.5)*(y-0.5))
		for k := range 3 {
			v := float64(m.Pixels[k*n+i]) * light * texture * edge
			m.Pixels[k*n+i] = float32(math.Round(255*min(max(v, 0), 1)) / 255)
		}
	}
	return m
}

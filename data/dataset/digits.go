package dataset

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"

	"github.com/starling-fl/starling/internal/leaf/seeded"
)

// DigitSide is the side of a generated digit, in pixels.
const DigitSide = 8

// digitShapes are the ten digits, five by seven.
var digitShapes = [10][7]string{
	{" ### ", "#   #", "#  ##", "# # #", "##  #", "#   #", " ### "}, {"  #  ", " ##  ", "  #  ", "  #  ", "  #  ", "  #  ", " ### "},
	{" ### ", "#   #", "    #", "   # ", "  #  ", " #   ", "#####"}, {" ### ", "#   #", "    #", "  ## ", "    #", "#   #", " ### "},
	{"   # ", "  ## ", " # # ", "#  # ", "#####", "   # ", "   # "}, {"#####", "#    ", "#### ", "    #", "    #", "#   #", " ### "},
	{" ### ", "#    ", "#    ", "#### ", "#   #", "#   #", " ### "}, {"#####", "    #", "   # ", "  #  ", "  #  ", "  #  ", "  #  "},
	{" ### ", "#   #", "#   #", " ### ", "#   #", "#   #", " ### "}, {" ### ", "#   #", "#   #", " ####", "    #", "    #", " ### "},
}

// Digits makes n labelled images of digits as writers write them: each of the writers
// has a slant, a size and a weight of pen of its own, and no two digits are alike.
// Writers of one split are none of another's.
func Digits(seed uint64, split string, writers, n int) (*Set, error) {
	if writers < 1 || n < writers {
		return nil, fmt.Errorf("dataset: %d digits of %d writers: want at least one of each", n, writers)
	}
	rng := seeded.Source(seed, binary.LittleEndian.Uint64([]byte("digits  ")), uint64(crc32.ChecksumIEEE([]byte(split))))
	set := &Set{Name: "digits", Labels: []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}}
	for w := range writers {
		slant, scale, pen := rng.NormFloat64()*0.15, 1+rng.NormFloat64()*0.08, 0.5+0.25*rng.Float64()
		for i := w; i < n; i += writers {
			d := rng.IntN(10)
			m := newImage(DigitSide, DigitSide, 1)
			turn := slant + rng.NormFloat64()*0.08
			dx, dy := rng.NormFloat64()*0.35, rng.NormFloat64()*0.35
			size := scale * (1 + rng.NormFloat64()*0.05)
			for p := range m.Pixels {
				// Where in the shape the middle of this pixel lies.
				y := (float64(p/DigitSide)+0.5-DigitSide/2-dy)/size + 3.5
				x := (float64(p%DigitSide)+0.5-DigitSide/2-dx)/size - turn*(y-3.5) + 2.5
				ink := inkAt(digitShapes[d], x-0.5, y-0.5, pen) + 0.06*rng.NormFloat64()
				m.Pixels[p] = float32(math.Round(16*math.Min(math.Max(ink, 0), 1)) / 16)
			}
			set.Examples = append(set.Examples, Example{Label: d, Image: m, User: split + "-" + strconv.Itoa(w)})
		}
	}
	return set, nil
}

// inkAt is how dark the shape is at a place between its cells: the nearer to a cell
// with ink the darker.
func inkAt(shape [7]string, x, y, pen float64) float64 {
	sum := 0.0
	for cy := int(math.Floor(y)) - 1; cy <= int(math.Floor(y))+2; cy++ {
		for cx := int(math.Floor(x)) - 1; cx <= int(math.Floor(x))+2; cx++ {
			if cy < 0 || cy >= 7 || cx < 0 || cx >= 5 || shape[cy][cx] != '#' {
				continue
			}
			d := math.Hypot(x-float64(cx), y-float64(cy))
			sum = math.Max(sum, math.Exp(-d*d/(2*pen*pen)))
		}
	}
	return sum
}

package memorization

import (
	"math"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
)

// leastBlur is the standard deviation, in pixels, of the published test's Gaussian blur (appendix D.1.1). A box that is higher
// has its height: letters of a scan in high resolution are larger than that.
const leastBlur = 20

// blurred is a page's picture whose boxes cannot be read any more. It is computed whenever it is used; nothing outside of the
// boxes changes, and nothing from there comes in.
func blurred(m *dataset.Image, boxes [][4]uint16) *dataset.Image {
	boxes = outer(boxes)
	return dataset.Deferred(func() (*dataset.Image, error) {
		page, err := m.Decoded()
		if err != nil {
			return nil, err
		}
		out := &dataset.Image{Width: page.Width, Height: page.Height, Channels: page.Channels, Pixels: append([]float32(nil), page.Pixels...)}
		for _, b := range boxes {
			left, right := span(b[0], b[2], page.Width)
			top, bottom := span(b[1], b[3], page.Height)
			for c := range page.Channels {
				blur(out.Pixels[(c*page.Height+top)*page.Width+left:], page.Width, right-left, bottom-top)
			}
		}
		return out, nil
	})
}

// outer leaves out boxes that are within others: of thousands of whole pages one is enough.
func outer(boxes [][4]uint16) (out [][4]uint16) {
	within := func(a, b [4]uint16) bool { return a[0] >= b[0] && a[1] >= b[1] && a[2] <= b[2] && a[3] <= b[3] }
	for _, box := range boxes {
		if slices.ContainsFunc(out, func(o [4]uint16) bool { return within(box, o) }) {
			continue
		}
		out = append(slices.DeleteFunc(out, func(o [4]uint16) bool { return within(o, box) }), box)
	}
	return out
}

// span is what thousandths of a page cover of its pixels, at least one.
func span(from, to uint16, pixels int) (first, end int) {
	first = min(int(from)*pixels/dataset.PageSide, pixels-1)
	return first, max(first+1, min((int(to)*pixels+dataset.PageSide-1)/dataset.PageSide, pixels))
}

// blur blurs width columns and height rows of an image whose rows are stride apart, by three means of neighbours each way:
// nearly a Gaussian, and as fast however wide. Neighbours beyond the edges do not count.
func blur(pixels []float32, stride, width, height int) {
	deviation := float64(max(leastBlur, height))
	radius := int(math.Ceil((math.Sqrt(4*deviation*deviation+1) - 1) / 2)) // three of its means have this deviation or more
	row := make([]float64, max(width, height))
	for y := range height {
		smooth(row[:width], radius, func(x int) *float32 { return &pixels[y*stride+x] })
	}
	for x := range width {
		smooth(row[:height], radius, func(y int) *float32 { return &pixels[y*stride+x] })
	}
}

// smooth does a line of pixels.
func smooth(line []float64, radius int, at func(int) *float32) {
	for i := range line {
		line[i] = float64(*at(i))
	}
	sums := make([]float64, len(line)+1)
	for range 3 {
		for i, v := range line {
			sums[i+1] = sums[i] + v
		}
		for i := range line {
			from, to := max(0, i-radius), min(i+radius+1, len(line))
			line[i] = (sums[to] - sums[from]) / float64(to-from)
		}
	}
	for i, v := range line {
		*at(i) = float32(v)
	}
}

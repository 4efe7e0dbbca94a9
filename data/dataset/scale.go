package dataset

import "math"

// Fit is the image at a size and number of channels; itself if it has them. A colour
// becomes grey, and sizes change, to the bit as Pillow 13.0.0 has it for pictures of 256
// levels (convert("L"), resize with BILINEAR); a finer one is rounded to these before.
func (m *Image) Fit(width, height, channels int) *Image {
	if m.Channels == 3 && channels == 1 {
		n := m.Width * m.Height
		grey := newImage(m.Width, m.Height, 1)
		for i := range n {
			// ITU-R 601 in 16 bits.
			v := 19595*int(level(m.Pixels[i])) + 38470*int(level(m.Pixels[n+i])) + 7471*int(level(m.Pixels[2*n+i]))
			grey.Pixels[i] = float32((v+1<<15)>>16) / 255
		}
		m = grey
	}
	if m.Width != width || m.Height != height {
		m = m.scale(width, height)
	}
	if m.Channels == 1 && channels == 3 {
		colour := newImage(m.Width, m.Height, 3)
		for c := range 3 {
			copy(colour.Pixels[c*m.Width*m.Height:], m.Pixels)
		}
		m = colour
	}
	return m
}

// level is the nearest of 256 to a value of 0..1.
func level(v float32) uint8 {
	return uint8(math.Floor(math.Min(math.Max(float64(v), 0), 1)*255 + 0.5))
}

// scale resamples rows and columns, of which a size that stays is left out. The second
// pass reads what the first one rounded. Which is first follows Pillow since 13.0: the
// columns where the height shrinks by more than twice as many pixels as the width.
func (m *Image) scale(width, height int) *Image {
	out := newImage(width, height, m.Channels)
	columnsFirst := m.Height-height > 0 && m.Height-height > 2*(m.Width-width)
	across, down := newTaps(m.Width, width), newTaps(m.Height, height)
	n := m.Width * m.Height
	plane := make([]uint8, n)
	for c := range m.Channels {
		for i, v := range m.Pixels[c*n : (c+1)*n] {
			plane[i] = level(v)
		}
		done := plane
		if columnsFirst {
			done = down.columns(done, m.Width)
		}
		done = across.rows(done, m.Width)
		if !columnsFirst {
			done = down.columns(done, width)
		}
		for i, v := range done {
			out.Pixels[c*width*height+i] = float32(v) / 255
		}
	}
	return out
}

// precision is how many bits the weights of a filter have behind the point.
const precision = 32 - 8 - 2

// taps are what the values of a scaled line are sums of; nil if it keeps its length.
type taps []tap

type tap struct {
	first   int // of the line
	weights []int32
}

// newTaps weighs a line of from values for each of to: a triangle over all that a new one
// covers.
func newTaps(from, to int) taps {
	if from == to {
		return nil
	}
	scale := float64(float32(from)) / float64(to)
	filter := math.Max(scale, 1)
	inverse := 1 / filter
	all := make(taps, to)
	var weights []float64
	for i := range all {
		centre := float64((float64(i) + 0.5) * scale) // converted, so that no processor fuses what follows with it
		first, end := max(0, int(centre-filter+0.5)), min(from, int(centre+filter+0.5))
		weights = weights[:0]
		sum := 0.0
		for x := range end - first {
			w := math.Max(0, 1-math.Abs(float64((float64(x+first)-centre+0.5)*inverse)))
			weights = append(weights, w)
			sum += w
		}
		all[i] = tap{first, make([]int32, len(weights))}
		for x, w := range weights {
			if sum != 0 {
				w /= sum
			}
			all[i].weights[x] = int32(0.5 + w*(1<<precision))
		}
	}
	return all
}

// rows scales lines of a width that lie one behind another.
func (t taps) rows(in []uint8, width int) []uint8 {
	if t == nil {
		return in
	}
	out := make([]uint8, 0, len(in)/width*len(t))
	for ; len(in) > 0; in = in[width:] {
		for _, tap := range t {
			sum := int32(1 << (precision - 1))
			line := in[tap.first : tap.first+len(tap.weights)]
			for x, w := range tap.weights {
				sum += int32(line[x]) * w
			}
			out = append(out, clip(sum))
		}
	}
	return out
}

// columns scales columns of a picture of that width.
func (t taps) columns(in []uint8, width int) []uint8 {
	if t == nil {
		return in
	}
	out := make([]uint8, 0, width*len(t))
	sums := make([]int32, width)
	for _, tap := range t {
		for x := range sums {
			sums[x] = 1 << (precision - 1)
		}
		for y, w := range tap.weights {
			for x, v := range in[(tap.first+y)*width:][:width] {
				sums[x] += int32(v) * w
			}
		}
		for _, sum := range sums {
			out = append(out, clip(sum))
		}
	}
	return out
}

// clip is a sum of levels without the bits behind the point.
func clip(sum int32) uint8 { return uint8(min(max(sum>>precision, 0), 255)) }

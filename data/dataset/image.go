package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
)

// Image is a picture of one channel (grey) or three (red, green, blue).
type Image struct {
	Width, Height, Channels int
	Pixels                  []float32 // [Channels][Height][Width], 0..1; nil before Decoded

	read func() (*Image, error) // nil: it is decoded
	sum  []byte                 // of its file, or of what it is drawn of; nil: it has none
	file string                 // its path; "": it has none
}

// Deferred is an image that is read whenever it is used: decoded, a photo takes a
// hundred times its file.
func Deferred(read func() (*Image, error)) *Image { return &Image{read: read} }

// Decoded returns the image with its pixels; only a Deferred one is decoded.
func (m *Image) Decoded() (*Image, error) {
	if m.read == nil {
		return m, nil
	}
	got, err := m.read()
	if err != nil {
		return nil, err
	}
	return got, got.Check()
}

// MaxPixels bounds an image: more than a phone takes.
const MaxPixels = 1 << 26

// DecodeImage reads a PNG, JPEG or PGM/PPM file. Its transparency is left out.
func DecodeImage(data []byte) (*Image, error) {
	if netpbm(data) {
		return decodePNM(data)
	}
	return decodeCompressed(data)
}

// checkHeader refuses what DecodeImage would, as far as a header tells.
func checkHeader(data []byte) error {
	if netpbm(data) {
		_, err := decodePNM(data)
		return err
	}
	return checkCompressed(data)
}

func netpbm(data []byte) bool {
	return len(data) > 2 && data[0] == 'P' && data[1] >= '1' && data[1] <= '7'
}

func newImage(w, h, channels int) *Image {
	return &Image{Width: w, Height: h, Channels: channels, Pixels: make([]float32, w*h*channels)}
}

// FromRGBA returns an opaque picture of RGBA bytes, row by row; alpha is ignored. A picture without colour has one
// channel.
func FromRGBA(w, h int, pixels []byte) (*Image, error) {
	if err := checkSize(w, h); err != nil {
		return nil, err
	}
	n := w * h
	if len(pixels) != 4*n {
		return nil, fmt.Errorf("a picture of %d x %d has %d bytes of pixels, want %d", w, h, len(pixels), 4*n)
	}
	channels := 1
	for i := 0; i < n && channels == 1; i++ {
		if p := pixels[4*i:]; p[0] != p[1] || p[1] != p[2] {
			channels = 3
		}
	}
	out := newImage(w, h, channels)
	for i := range n {
		for c := range channels {
			out.Pixels[c*n+i] = float32(pixels[4*i+c]) / 255
		}
	}
	return out, nil
}

func checkSize(w, h int) error {
	if w < 1 || h < 1 || w > MaxPixels || h > MaxPixels || w*h > MaxPixels {
		return fmt.Errorf("an image of %d x %d, want 1 to %d pixels", w, h, MaxPixels)
	}
	return nil
}

// Check refuses an image that is not as large as it says.
func (m *Image) Check() error {
	if err := checkSize(m.Width, m.Height); err != nil {
		return err
	}
	if m.Channels != 1 && m.Channels != 3 || len(m.Pixels) != m.Width*m.Height*m.Channels {
		return fmt.Errorf("an image of %d x %d pixels and %d channels has %d values", m.Width, m.Height, m.Channels, len(m.Pixels))
	}
	return nil
}

// decodePNM reads Netpbm's grey and colour formats, P2, P3, P5 and P6 (pgm(5), ppm(5)).
func decodePNM(data []byte) (*Image, error) {
	in := bufio.NewReader(bytes.NewReader(data[2:]))
	kind := data[1]
	channels := map[byte]int{'2': 1, '5': 1, '3': 3, '6': 3}[kind]
	if channels == 0 {
		return nil, fmt.Errorf("a Netpbm file of kind P%c, want P2, P3, P5 or P6", kind)
	}
	var head [3]int // width, height, largest value
	for i := range head {
		n, err := pnmNumber(in)
		if err != nil {
			return nil, err
		}
		head[i] = n
	}
	w, h, most := head[0], head[1], head[2]
	if err := checkSize(w, h); err != nil {
		return nil, err
	}
	if most < 1 || most > math.MaxUint16 {
		return nil, fmt.Errorf("a Netpbm file of values up to %d, want 1..65535", most)
	}
	binary, wide := kind >= '5', most > 255
	least := w * h * channels // bytes that the pixels take
	if wide || !binary {
		least *= 2
	}
	if least-1 > len(data) {
		return nil, errors.New("the image ends too early")
	}
	out := newImage(w, h, channels)
	for i := range w * h * channels {
		var v int
		var err error
		if binary {
			var b byte
			b, err = in.ReadByte()
			if v = int(b); wide && err == nil {
				b, err = in.ReadByte()
				v = v<<8 | int(b)
			}
		} else {
			v, err = pnmNumber(in)
		}
		if err != nil || v > most {
			return nil, fmt.Errorf("pixel %d of the image is missing or above %d", i, most)
		}
		out.Pixels[i%channels*w*h+i/channels] = float32(v) / float32(most)
	}
	return out, nil
}

// pnmNumber reads a number and the one character behind it.
func pnmNumber(in *bufio.Reader) (int, error) {
	n, digits := 0, 0
	for {
		b, err := in.ReadByte()
		switch {
		case err == io.EOF && digits > 0:
			return n, nil
		case err != nil:
			return 0, errors.New("the image ends too early")
		case b >= '0' && b <= '9':
			n, digits = n*10+int(b-'0'), digits+1
			if n > MaxPixels {
				return 0, fmt.Errorf("a number above %d in the image", MaxPixels)
			}
		case b == '#' && digits == 0:
			if _, err := in.ReadString('\n'); err != nil {
				return 0, errors.New("the image ends too early")
			}
		case b != ' ' && b != '\t' && b != '\n' && b != '\r':
			return 0, fmt.Errorf("%q where the image has a number", b)
		case digits > 0:
			return n, nil
		}
	}
}

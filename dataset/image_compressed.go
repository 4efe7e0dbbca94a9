//go:build !js || full

package dataset

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // a decoder that image.Decode finds, as png is
	"image/png"
	"os"
)

// decodeCompressed reads PNG and JPEG, this turned as its camera was held.
func decodeCompressed(data []byte) (*Image, error) {
	if err := checkCompressed(data); err != nil {
		return nil, err
	}
	src, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	r := src.Bounds()
	w, h := r.Dx(), r.Dy()
	if grey, ok := src.(*image.Gray); ok {
		out := newImage(w, h, 1)
		for i := range out.Pixels {
			out.Pixels[i] = float32(grey.Pix[i/w*grey.Stride+i%w]) / 255
		}
		return out.turned(orientation(data)), nil
	}
	out := newImage(w, h, 3)
	for i := range w * h {
		x, y, z, _ := src.At(r.Min.X+i%w, r.Min.Y+i/w).RGBA()
		for c, v := range [3]uint32{x, y, z} {
			out.Pixels[c*w*h+i] = float32(v>>8) / 255
		}
	}
	return out.turned(orientation(data)), nil
}

// checkCompressed reads a header.
func checkCompressed(data []byte) error {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("neither PNG, JPEG nor PGM: %w", err)
	}
	return checkSize(c.Width, c.Height)
}

// WritePNG writes an image of red, green and blue to a file.
func WritePNG(path string, m *Image) (err error) {
	if m, err = m.Decoded(); err != nil {
		return err
	}
	m = m.Fit(m.Width, m.Height, 3)
	n := m.Width * m.Height
	picture := image.NewRGBA(image.Rect(0, 0, m.Width, m.Height))
	for i := range n {
		picture.SetRGBA(i%m.Width, i/m.Width, color.RGBA{level(m.Pixels[i]), level(m.Pixels[n+i]), level(m.Pixels[2*n+i]), 255})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = png.Encode(f, picture)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

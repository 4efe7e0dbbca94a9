//go:build !js || full

package dataset

import (
	"bytes"
	"fmt"
	"image"
	_ "image/jpeg" // decoders that image.Decode finds
	_ "image/png"
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

//go:build !js || full

package dataset

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
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
	width, height, at := turn(orientation(data), r.Dx(), r.Dy())
	if grey, ok := src.(*image.Gray); ok {
		out := newImage(width, height, 1)
		for i := range out.Pixels {
			x, y := at(i)
			out.Pixels[i] = float32(grey.GrayAt(r.Min.X+x, r.Min.Y+y).Y) / 255
		}
		return out, nil
	}
	out := newImage(width, height, 3)
	for i := range width * height {
		x, y := at(i)
		red, green, blue, _ := src.At(r.Min.X+x, r.Min.Y+y).RGBA()
		for c, v := range [3]uint32{red, green, blue} {
			out.Pixels[c*width*height+i] = float32(v>>8) / 255
		}
	}
	return out, nil
}

// maxPictureBytes bounds what decoding a picture takes, whatever its file says: 50 million pixels of
// three channels, of one byte as they are decoded and of four as they are used.
const maxPictureBytes = 768 << 20

// checkCompressed reads a header.
func checkCompressed(data []byte) error {
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("neither PNG, JPEG nor PGM: %w", err)
	}
	if err := checkSize(c.Width, c.Height); err != nil {
		return err
	}
	decoded, used := pixelBytes(c.ColorModel)
	if format == "png" && len(data) > pngInterlace && data[pngInterlace] != 0 {
		decoded *= 2 // each pass is an image, and all of them as many pixels again
	}
	if takes := c.Width * c.Height * (decoded + used); takes > maxPictureBytes {
		return fmt.Errorf("an image of %d x %d pixels, %d bytes each, takes %d MiB to decode, the limit is %d: save it smaller, or with 8 bits a channel",
			c.Width, c.Height, decoded, takes>>20, maxPictureBytes>>20)
	}
	return nil
}

// pngInterlace is where a PNG says whether it is interlaced: behind its signature, in IHDR.
const pngInterlace = 28

// pixelBytes are the bytes of a pixel as the standard library decodes it, and as an Image has it.
func pixelBytes(m color.Model) (decoded, used int) {
	switch m {
	case color.GrayModel:
		return 1, 4
	case color.Gray16Model:
		return 2, 12
	case color.YCbCrModel:
		return 3, 12
	case color.RGBA64Model, color.NRGBA64Model:
		return 8, 12
	}
	if _, paletted := m.(color.Palette); paletted {
		return 1, 12
	}
	return 4, 12
}

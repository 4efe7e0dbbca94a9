//go:build !js || full

package dataset

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"slices"
	"testing"
)

// Pillow 13: ImageOps.exif_transpose of the picture 0 1 2 / 3 4 5.
var transposed = [][]float32{1: {0, 1, 2, 3, 4, 5}, 2: {2, 1, 0, 5, 4, 3}, 3: {5, 4, 3, 2, 1, 0}, 4: {3, 4, 5, 0, 1, 2},
	5: {0, 3, 1, 4, 2, 5}, 6: {3, 0, 4, 1, 5, 2}, 7: {5, 2, 4, 1, 3, 0}, 8: {2, 5, 1, 4, 0, 3}}

// exif is a camera's segment with an orientation, behind other entries.
func exif(order binary.AppendByteOrder, orientation uint16) []byte {
	b := []byte("Exif\x00\x00MM\x00*")
	if order.AppendUint16(nil, 1)[0] == 1 {
		b = []byte("Exif\x00\x00II*\x00")
	}
	b = order.AppendUint32(b, 12)
	b = append(b, 0, 0, 0, 0)
	b = order.AppendUint16(b, 2)
	for _, e := range [][2]uint16{{0x100, 640}, {0x112, orientation}} {
		b = order.AppendUint16(order.AppendUint16(b, e[0]), 3)
		b = order.AppendUint32(b, 1)
		b = append(order.AppendUint16(b, e[1]), 0, 0)
	}
	return b
}

// photo is a JPEG with segments before the picture's own.
func photo(t testing.TB, m image.Image, segments ...[]byte) []byte {
	t.Helper()
	var j bytes.Buffer
	if err := jpeg.Encode(&j, m, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	out := slices.Clone(j.Bytes()[:2])
	for _, s := range segments {
		out = append(out, 0xff, 0xff, 0xe1) // one byte fills up
		out = append(binary.BigEndian.AppendUint16(out, uint16(2+len(s))), s...)
	}
	return append(out, j.Bytes()[2:]...)
}

// A photo is read as browsers show it and as transformers loads it: turned as the camera
// was held.
func TestPhotosAreTurned(t *testing.T) {
	for orientation, want := range transposed {
		if orientation == 0 {
			continue
		}
		m := &Image{Width: 3, Height: 2, Channels: 3}
		for i := range 18 {
			m.Pixels = append(m.Pixels, float32(i))
		}
		width, height, at := turn(orientation, m.Width, m.Height)
		got := newImage(width, height, 3)
		for i := range 6 {
			x, y := at(i)
			for c := range 3 {
				got.Pixels[6*c+i] = m.Pixels[6*c+y*m.Width+x]
			}
		}
		if w, h := got.Width, got.Height; w*h != 6 || (w == 2) != (orientation >= 5) {
			t.Errorf("%d: %d x %d", orientation, w, h)
		}
		for c := range 3 {
			for i, v := range got.Pixels[6*c : 6*c+6] {
				if v != want[i]+float32(6*c) {
					t.Errorf("orientation %d: %v, want %v", orientation, got.Pixels, want)
				}
			}
		}
	}
	for _, colour := range []bool{false, true} {
		var src image.Image = image.NewGray(image.Rect(0, 0, 32, 16))
		if colour {
			src = image.NewRGBA(src.Bounds())
		}
		for x := range 16 { // the left half is white
			for y := range 16 {
				switch m := src.(type) {
				case *image.Gray:
					m.SetGray(x, y, color.Gray{Y: 255})
				case *image.RGBA:
					m.Set(x, y, color.White)
				}
			}
		}
		for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
			m, err := DecodeImage(photo(t, src, []byte("http://ns.adobe.com/xap/1.0/\x00"), exif(order, 6)))
			if err != nil || m.Width != 16 || m.Height != 32 {
				t.Fatalf("%v, %+v", err, m)
			}
			if top, bottom := m.Pixels[0], m.Pixels[16*31]; top < 0.9 || bottom > 0.1 {
				t.Errorf("%v: the top is %v, the bottom %v", order, top, bottom)
			}
		}
		for name, segments := range map[string][][]byte{"none": nil, "9": {exif(binary.BigEndian, 9)}, "short": {exif(binary.BigEndian, 6)[:20]},
			"no directory": {[]byte("Exif\x00\x00MM\x00*\xff\xff\xff\xff")}} {
			if m, err := DecodeImage(photo(t, src, segments...)); err != nil || m.Width != 32 {
				t.Errorf("%s: %v, %+v", name, err, m)
			}
		}
	}
}

func FuzzOrientation(f *testing.F) {
	f.Add(photo(f, image.NewGray(image.Rect(0, 0, 1, 1)), exif(binary.LittleEndian, 8)))
	f.Add(photo(f, image.NewGray(image.Rect(0, 0, 1, 1)), exif(binary.BigEndian, 3)[:30]))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o := orientation(data); o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
	})
}

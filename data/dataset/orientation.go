//go:build !js || full

package dataset

import (
	"bytes"
	"encoding/binary"
)

// Markers of a JPEG file (ITU-T T.81, annex B).
const (
	markerStart = 0xd8
	markerScan  = 0xda // pixels follow
	markerApp1  = 0xe1 // where a camera writes
)

// orientation is how a JPEG's pixels lie, as its camera was held: Exif's tag 0x112 (CIPA
// DC-008, 4.6.4), 1 to 8; 1, as they are shown, where it says nothing that can be read.
// Browsers turn a picture by it before a page has its pixels, and transformers' load_image
// does.
func orientation(data []byte) int {
	if len(data) < 2 || data[0] != 0xff || data[1] != markerStart {
		return 1
	}
	for data = data[2:]; len(data) >= 4 && data[0] == 0xff && data[1] != markerScan; {
		if data[1] == 0xff { // fills up
			data = data[1:]
			continue
		}
		size := int(binary.BigEndian.Uint16(data[2:])) // without the marker
		if size < 2 || 2+size > len(data) {
			return 1
		}
		if body, exif := bytes.CutPrefix(data[4:2+size], []byte("Exif\x00\x00")); exif && data[1] == markerApp1 {
			return tiffOrientation(body)
		}
		data = data[2+size:]
	}
	return 1
}

// tiffOrientation looks through the first directory of a TIFF header.
func tiffOrientation(data []byte) int {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("MM\x00*")):
		order = binary.BigEndian
	}
	if order == nil || len(data) < 8 {
		return 1
	}
	at := order.Uint32(data[4:])
	if uint64(at)+2 > uint64(len(data)) {
		return 1
	}
	const tag, short, entry = 0x112, 3, 12
	n := int(order.Uint16(data[at:]))
	for data = data[at+2:]; n > 0 && len(data) >= entry; n, data = n-1, data[entry:] {
		if order.Uint16(data) != tag {
			continue
		}
		if v := order.Uint16(data[8:]); order.Uint16(data[2:]) == short && order.Uint32(data[4:]) == 1 && v >= 1 && v <= 8 {
			return int(v)
		}
		return 1
	}
	return 1
}

// turn is how a picture of w x h pixels, as it lies, is shown: its size, and for each place of it the
// pixel that is shown there.
func turn(orientation, w, h int) (width, height int, at func(i int) (x, y int)) {
	width, height = w, h
	if orientation >= 5 { // rows become columns
		width, height = h, w
	}
	return width, height, func(i int) (x, y int) {
		x, y = i%width, i/width
		if orientation >= 5 {
			x, y = y, x
		}
		switch orientation {
		case 2, 3, 7, 8:
			x = w - 1 - x
		}
		switch orientation {
		case 3, 4, 6, 7:
			y = h - 1 - y
		}
		return x, y
	}
}

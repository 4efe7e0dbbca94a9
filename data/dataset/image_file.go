package dataset

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// IsImage reports whether a file's name is that of an image that DecodeImage reads. What macOS keeps beside files on
// disks of others, as ._0.png, is none.
func IsImage(name string) bool {
	return !beside(name) && slices.Contains([]string{".png", ".jpg", ".jpeg", ".pgm", ".ppm"}, strings.ToLower(filepath.Ext(name)))
}

// OpenImage returns an image that is decoded from its file at each use, and refused if the file changes meanwhile.
// A file that is no image is refused at once, by its header.
func OpenImage(path string) (*Image, error) {
	open, sum, err := keptFile(path, maxImage, checkHeader, DecodeImage)
	if err != nil {
		return nil, err
	}
	m := Deferred(open)
	m.sum, m.file = sum, path
	return m, nil
}

// File is the path of its file, as it was given; "" where it has none.
func (m *Image) File() string { return m.file }

// Identity tells an image from others: the hash of its file where it has one, else its
// pixels as big-endian float32.
func (m *Image) Identity() []byte {
	if m.sum != nil {
		return m.sum
	}
	out := make([]byte, 0, 4*len(m.Pixels))
	for _, v := range m.Pixels {
		out = binary.BigEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// beside reports whether a file is one that macOS keeps beside another, of that name behind "._".
func beside(name string) bool { return strings.HasPrefix(filepath.Base(name), "._") }

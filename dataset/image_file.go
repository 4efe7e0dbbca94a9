package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// IsImage says whether a file's name is that of an image that DecodeImage reads.
func IsImage(name string) bool {
	return slices.Contains([]string{".png", ".jpg", ".jpeg", ".pgm", ".ppm"}, strings.ToLower(filepath.Ext(name)))
}

// OpenImage is the image of a file, which stays there and is decoded whenever it is used:
// one that changes meanwhile is refused. What is no image is told now, by its header.
func OpenImage(path string) (*Image, error) {
	data, err := readImage(path)
	if err == nil {
		err = checkHeader(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(data)
	m := Deferred(func() (*Image, error) {
		data, err := readImage(path)
		if err == nil && sha256.Sum256(data) != sum {
			err = fmt.Errorf("has changed since it was opened")
		}
		var m *Image
		if err == nil {
			m, err = DecodeImage(data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return m, nil
	})
	m.sum = sum[:]
	return m, nil
}

func readImage(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImage+1))
	if err == nil && len(data) > maxImage {
		err = fmt.Errorf("larger than %d bytes", maxImage)
	}
	return data, err
}

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

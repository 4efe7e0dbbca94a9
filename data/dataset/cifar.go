package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A batch of CIFAR-10's binary version (Krizhevsky 2009) is records of one byte of label
// and 32 x 32 pixels, all red ones, then the green and the blue ones, row by row.
const (
	cifarSide   = 32
	cifarPixels = 3 * cifarSide * cifarSide
)

// cifarLabels are what batches.meta.txt says beside the batches.
var cifarLabels = [10]string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}

// batches reads records until the file ends. Pixels stay bytes until an image is used: as
// float32 the whole set has 700 MB.
func (s *scanner) batches(in io.Reader) error {
	for n := 1; ; n++ {
		record := make([]byte, 1+cifarPixels)
		switch got, err := io.ReadFull(in, record); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%s: record %d ends after %d of %d bytes: a .bin file is to be a batch of CIFAR-10's binary version", s.name, n, got, len(record))
		case err != nil:
			return fmt.Errorf("%s: %w", s.name, err)
		case int(record[0]) >= len(cifarLabels):
			return fmt.Errorf("%s: record %d has the label %d, want 0 to %d: a .bin file is to be a batch of CIFAR-10's binary version", s.name, n, record[0], len(cifarLabels)-1)
		}
		if err := s.each(n, labelled{Label: cifarLabels[record[0]], Image: packed(record[1:])}); err != nil {
			return fmt.Errorf("%s: record %d: %w", s.name, n, err)
		}
	}
}

// packed is a picture of bytes, plane by plane.
func packed(pixels []byte) *Image {
	m := Deferred(func() (*Image, error) {
		out := newImage(cifarSide, cifarSide, 3)
		for i, v := range pixels {
			out.Pixels[i] = float32(v) / 255
		}
		return out, nil
	})
	sum := sha256.Sum256(pixels)
	m.sum = sum[:]
	return m
}

// batchFiles are the batches of a folder that are to train on, as CIFAR-10 is unpacked:
// test_batch.bin is left for a test part of its own. A folder that holds nothing else is
// read whole.
func batchFiles(path string) ([]string, error) {
	files, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var all, train []string
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".gz")
		if f.IsDir() || filepath.Ext(name) != ".bin" {
			continue
		}
		all = append(all, filepath.Join(path, f.Name()))
		if !strings.HasPrefix(name, "test") {
			train = append(train, all[len(all)-1])
		}
	}
	if len(train) > 0 {
		return train, nil
	}
	return all, nil
}

// loadBatches reads several batches as one set.
func loadBatches(path string, files []string) (*Set, error) {
	var examples []Example
	var names []string
	for _, file := range slices.Sorted(slices.Values(files)) {
		s, err := Load(file)
		if err != nil {
			return nil, err
		}
		for _, e := range s.Examples {
			examples, names = append(examples, e), append(names, s.Labels[e.Label])
		}
	}
	return byName(path, examples, names), nil
}

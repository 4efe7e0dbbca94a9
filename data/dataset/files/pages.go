package files

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/data/dataset"
)

// WritePages writes the pictures of a set's pages as files of a folder, each once, from which they then are. A file has the
// name of whose page it is, or the set's.
func WritePages(set *dataset.Set, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	written := map[*dataset.Image]*dataset.Image{}
	for i := range set.Examples {
		e := &set.Examples[i]
		file, done := written[e.Image]
		if !done {
			path := filepath.Join(folder, PageName(set, i))
			err := WritePNG(path, e.Image)
			if err == nil {
				file, err = dataset.OpenImage(path)
			}
			if err != nil {
				return err
			}
			written[e.Image] = file
		}
		e.Image = file
	}
	return nil
}

// PageName returns the file name of the i-th example's picture, unless it shares the one before it.
func PageName(set *dataset.Set, i int) string {
	return fmt.Sprintf("%s-%05d.png", cmp.Or(set.Examples[i].User, set.Name), i)
}

// WritePNG writes an image of red, green and blue to a file.
func WritePNG(path string, m *dataset.Image) (err error) {
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

// level is a value in 0..1 as a byte.
func level(v float32) uint8 { return uint8(math.Round(255 * float64(min(max(v, 0), 1)))) }

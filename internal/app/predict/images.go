package predict

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// eachImage calls each with the images of a file, a folder or a table of pixels, and
// with their numbers or lines, from 1.
func eachImage(c dataset.Columns, in io.Reader, name string, each func(at int, m *dataset.Image) error) error {
	if info, err := os.Stat(name); name != "" && err == nil && info.IsDir() {
		files, err := os.ReadDir(name)
		if err != nil {
			return err
		}
		n := 0
		for _, f := range files {
			if !dataset.IsImage(f.Name()) {
				continue
			}
			m, err := dataset.OpenImage(filepath.Join(name, f.Name()))
			if err == nil {
				n++
				err = each(n, m)
			}
			if err != nil {
				return err
			}
		}
		if n == 0 && slices.ContainsFunc(files, os.DirEntry.IsDir) {
			return named.Errorf("%s: %w: its images are in folders: give one of those, or evaluate it, where each folder is a label", name, dataset.ErrEmpty)
		}
		if n == 0 {
			return named.Errorf("%s: %w: want .png, .jpg or .pgm files", name, dataset.ErrEmpty)
		}
		return nil
	}
	if dataset.IsImage(name) {
		m, err := dataset.OpenImage(name)
		if err != nil {
			return err
		}
		return each(1, m)
	}
	return c.Images(in, name, each)
}

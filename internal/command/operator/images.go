package operator

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
)

// images says whether a set holds images.
func images(s *dataset.Set) bool { return len(s.Examples) > 0 && s.Examples[0].Image != nil }

// called is what people call examples.
func called(examples []dataset.Example) string {
	if len(examples) > 0 && examples[0].Image != nil {
		return "images"
	}
	return "texts"
}

// defaultSide is that of an untrained base's images where their own is none it can have.
const defaultSide = 32

// trainImages makes a job one of images. Where it names no base there is none to
// adapt: a small untrained one is trained whole, with more steps a round. scaled says
// that it sees its images in another size than theirs.
func trainImages(j *coordinator.Job, sample *dataset.Image, seed uint64) (b *model.Base, scaled bool, err error) {
	j.Task = string(model.TaskImage)
	if j.Base != "" {
		return nil, false, nil
	}
	if sample, err = sample.Decoded(); err != nil {
		return nil, false, err
	}
	side := sample.Width
	if scaled = sample.Height != side || side < 4 || side > 64 || side%4 != 0; scaled {
		side = defaultSide
	}
	patch := max(2, side/8)
	if b, err = model.RandomBase(model.NewViT(64, 2, side, patch, sample.Channels), seed, nil); err != nil {
		return nil, false, err
	}
	if !j.Adapter.HeadOnly {
		j.Adapter.Method = string(model.MethodFull)
	}
	// Nothing is learnt yet: updates are long, and point the same way for many rounds.
	j.Training.Steps, j.Training.Batch = 16, 16
	j.Privacy.ClipNorm, j.Server.Momentum = 10, 0.8
	return b, scaled, nil
}

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
			return fmt.Errorf("%s: %w: its images are in folders: give one of those, or evaluate it, where each folder is a label", name, dataset.ErrEmpty)
		}
		if n == 0 {
			return fmt.Errorf("%s: %w: want .png, .jpg or .pgm files", name, dataset.ErrEmpty)
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

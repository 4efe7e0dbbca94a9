package task

import (
	"errors"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

// images is one label for an image.
type images struct {
	whole
	columns []Column
	vit     model.ViT
}

var imageKind = kind{columns: imageColumns, takes: []dataset.Form{dataset.FormPictures}, textless: true, make: func(p parts) (Task, error) {
	return &images{columns: p.columns, vit: p.layout.Config.ViT}, nil
}}

func imageColumns(l *model.Layout, _ int) []Column {
	v := l.Config.ViT
	return []Column{
		{Name: Patches, Type: F32, Shape: []int{v.Patches(), v.PatchValues()}},
		{Name: Labels, Type: I32, Limit: l.Classes},
		{Name: Weights, Type: F32},
	}
}

func (t *images) Columns() []Column { return t.columns }

func (t *images) Encode(e *dataset.Example, b Batch, row int) error {
	if e.Image == nil {
		return errors.New("it is no image, and the job trains on images")
	}
	n := t.columns[0].Size()
	if err := Pixels(e.Image, t.vit, b[0].F32[row*n:(row+1)*n]); err != nil {
		return err
	}
	b[1].I32[row], b[2].F32[row] = int32(e.Label), 1
	return nil
}

// Pixels writes an image as an encoder's patches.
func Pixels(m *dataset.Image, v model.ViT, out []float32) error {
	im, err := m.Decoded()
	if err != nil {
		return err
	}
	im = im.Fit(v.ImageSize.Width, v.ImageSize.Height, v.Channels)
	out = out[:0]
	_, columns := v.Grid()
	for p := range v.Patches() {
		for c := range v.Channels {
			for y := range v.PatchSize.Height {
				row := c*v.ImageSize.Height + p/columns*v.PatchSize.Height + y
				at := row*v.ImageSize.Width + p%columns*v.PatchSize.Width
				for _, x := range im.Pixels[at : at+v.PatchSize.Width] {
					out = append(out, (x-float32(v.Mean[c]))/float32(v.Std[c]))
				}
			}
		}
	}
	return nil
}

package task

import (
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

// Patches that are wider than high lie row by row of the image, each row by row of its
// own.
func TestImagePatchesOfUnequalSides(t *testing.T) {
	c := model.NewViT(12, 1, 4, 2, 1)
	c.ViT.ImageSize, c.ViT.PatchSize = model.Extent{Height: 4, Width: 6}, model.Extent{Height: 2, Width: 3}
	c.ViT.Mean, c.ViT.Std = [3]float64{}, [3]float64{1, 1, 1}
	base, err := model.RandomBase(c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	lay, err := model.NewLayout(c, model.Method{RMax: 1, Alpha: 1, Task: model.TaskImage}, 2)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(base, lay, 1)
	if err != nil {
		t.Fatal(err)
	}
	im := &dataset.Image{Width: 6, Height: 4, Channels: 1}
	for i := range 24 {
		im.Pixels = append(im.Pixels, float32(i))
	}
	b := NewBatch(k.Columns(), 1)
	if err := k.Encode(&dataset.Example{Image: im}, b, 0); err != nil {
		t.Fatal(err)
	}
	want := []float32{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11, 12, 13, 14, 18, 19, 20, 15, 16, 17, 21, 22, 23}
	if got := b.Float32(Patches); !slices.Equal(got, want) {
		t.Errorf("patches %v, want %v", got, want)
	}
}

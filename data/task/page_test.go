package task

import (
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

// A base with an encoder of pages reads a document's picture as its patches, at the encoder's size and normalised, and
// refuses a document without one by the name of its key.
func TestAnswersReadPages(t *testing.T) {
	v := model.NewViT(8, 1, 4, 2, 3).ViT
	v.Mean, v.Std, v.BEiT = [3]float64{0.5, 0.25, 0}, [3]float64{0.5, 0.5, 2}, model.BEiT{NoKeyBias: true}
	c := model.Config{ModelType: "t5", VocabSize: 9, HiddenSize: 8, NumHiddenLayers: 1, NumAttentionHeads: 1, IntermediateSize: 8, LayerNormEps: 1e-6,
		HiddenAct: "relu", T5: model.T5{DecoderLayers: 1, KeySize: 8, Buckets: 8, MaxDistance: 16, End: 1, Scaled: true, Visual: model.Visual{
			HiddenSize: 8, NumHiddenLayers: 1, NumAttentionHeads: 2, IntermediateSize: 8, LayerNormEps: 1e-12, HiddenAct: "gelu", ViT: v}}}
	lay, err := model.NewLayout(c, model.Method{RMax: 1, Alpha: 1, Task: model.TaskAnswer, Answer: 4}, 0)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := Columns(lay, 6)
	if err != nil {
		t.Fatal(err)
	}
	a := newAnswer(columns, nil, lay, 6)
	b := NewBatch(columns, 2)
	m := &dataset.Image{Width: 4, Height: 4, Channels: 3, Pixels: make([]float32, 48)}
	for i := range m.Pixels {
		m.Pixels[i] = float32(i) / 255
	}
	if err := a.pixels(&dataset.Example{Image: m}, b, 1); err != nil {
		t.Fatal(err)
	}
	all := b.Float32(Patches)
	if len(all) != 2*4*12 || slices.ContainsFunc(all[:48], func(x float32) bool { return x != 0 }) {
		t.Fatalf("%d values, or the other row has some", len(all))
	}
	var want []float32 // of the second patch: rows 0 and 1, columns 2 and 3, of each channel
	for ch, mean := range []float32{0.5, 0.25, 0} {
		for _, at := range []int{2, 3, 6, 7} {
			want = append(want, (m.Pixels[16*ch+at]-mean)/float32(v.Std[ch]))
		}
	}
	if got := all[48+12 : 48+24]; !slices.Equal(got, want) {
		t.Errorf("the second patch is %v, want %v", got, want)
	}
	if err := a.pixels(&dataset.Example{}, b, 0); err == nil || !strings.Contains(err.Error(), `"image"`) {
		t.Errorf("a document without a page: %v", err)
	}
}

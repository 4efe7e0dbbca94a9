package nn

import (
	"testing"

	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// BenchmarkWrite times a token that a decoder of SmolLM2-135M's shape, in NF4, writes behind 32 others, on one core.
func BenchmarkWrite(b *testing.B) {
	c := model.Llama(49152, 576, 30, 9, 8192)
	c.IntermediateSize, c.Decoder.KVHeads, c.Decoder.Rope.Theta = 1536, 3, 1e5
	base, err := model.RandomBase(c, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	if base, err = base.Pack(); err != nil {
		b.Fatal(err)
	}
	l, err := model.NewLayout(c, model.Method{RMax: 8, Alpha: 16, Task: model.TaskCausal}, 0)
	if err != nil {
		b.Fatal(err)
	}
	w, err := NewWriter(l, base, 1024, compiler.New())
	if err != nil {
		b.Fatal(err)
	}
	text, err := w.Begin(model.NewAdapter(l, 1).Slice(8), 8)
	if err != nil {
		b.Fatal(err)
	}
	defer text.Close()
	for _, n := range []int{readChunk, 1} { // weights are written into a program's memory before its first call
		if _, err := text.Read(b.Context(), make([]int32, n)); err != nil {
			b.Fatal(err)
		}
	}
	began := cputime.Now()
	for b.Loop() { // at most as many as the text has room for
		if _, err := text.Read(b.Context(), []int32{7}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(1e9/cputime.Each(b, began), "tokens/s")
}

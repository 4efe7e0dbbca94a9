package gguf

import (
	"fmt"
	"slices"

	"github.com/starling-fl/starling/model"
)

// adapter writes a LoRA adapter cut to a rank.
func (f *file) adapter(ck *model.Checkpoint, rank int) error {
	c, l := ck.Base.Config, ck.Adapter.Layout()
	if rank == 0 {
		return fmt.Errorf("%w: rank 0 is no adapter: write the model as %s or %s", ErrUnsupported, F16, Q8)
	}
	f.set("general.type", "adapter")
	f.set("adapter.type", "lora")
	f.set("adapter.lora.alpha", float32(l.Method.AlphaAt(rank)))
	ours, theirs := names(c)
	v := ck.Adapter.Slice(rank)
	for _, s := range l.Spans(rank) {
		name := s.Changes()
		i := slices.Index(ours, name)
		if i < 0 || s.Kind != model.KindA && s.Kind != model.KindB {
			return fmt.Errorf("%w: the adapter trains %s whole, which a LoRA adapter does not hold: write the model as %s or %s", ErrUnsupported, name, F16, Q8)
		}
		values, end := v[s.Offset:s.Offset+s.Len], ".lora_a"
		if s.Kind == model.KindB {
			end = ".lora_b"
			if heads := turned(c, name); heads > 0 {
				values = turn(values, heads, s.Shape[0])
			}
		}
		f.add(theirs[i]+end, s.Shape, values, tensorF32)
	}
	return nil
}

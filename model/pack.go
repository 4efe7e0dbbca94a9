package model

import "slices"

// repack makes 4-bit codes of the named tensors: Starling has written them as plain
// floats for others to read, each the value of a code, and packing those again gives
// the codes that they came from.
func repack(b *Base, names []string) (*Base, error) {
	packed := map[string]bool{}
	for _, n := range names {
		packed[n] = true
	}
	return b.pack(func(t TensorSpec) bool { return packed[t.Name] })
}

// Pack is the base with its matrices as 4-bit codes, an eighth of their size, as
// NewBase packs them: what it computes with then is what the codes say. What is packed
// already stays as it is.
func (b *Base) Pack() (*Base, error) { return b.pack(packs) }

// Packed reports whether Pack would change nothing.
func (b *Base) Packed() bool {
	return !slices.ContainsFunc(b.Config.BaseTensors(), func(t TensorSpec) bool {
		return packs(t) && !hasTensor(b.stored, t.Name+nf4State)
	})
}

// pack reads and packs one tensor at a time.
func (b *Base) pack(which func(TensorSpec) bool) (*Base, error) {
	st := &SafeTensors{Metadata: b.stored.Metadata}
	for _, spec := range b.Config.BaseTensors() {
		parts := []string{""}
		if hasTensor(b.stored, spec.Name+nf4State) {
			parts = nf4Parts
		} else if which(spec) {
			t, err := b.stored.Tensor(spec.Name)
			if err == nil {
				err = st.AddNF4(t.Name, t.Shape, t.Data)
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		for _, part := range parts {
			if raw, ok := b.stored.Lookup(spec.Name + part); ok {
				st.Tensors = append(st.Tensors, raw)
			}
		}
	}
	return openBase(b.Config, st, b.Tokenizer)
}

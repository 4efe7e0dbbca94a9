package model

import "slices"

// Merge returns the values of what an adapter changes, by name: the adapted maps
// with the low-rank product added, W + s_b * B A, tensors with their difference
// added, and the head's tensors.
// slice is the adapter at rank b, Layout.Size(b) values; it panics on another
// length. The base's own values stay.
func (l *Layout) Merge(base *Base, slice []float32, b int) (map[string][]float32, error) {
	return l.merge(base, slice, b, false)
}

// Apart is Merge but for LoRA's products: it gives their factors by their own names, filled up with zeros to the highest
// rank, the second one times the product's scale.
func (l *Layout) Apart(base *Base, slice []float32, b int) (map[string][]float32, error) {
	return l.merge(base, slice, b, true)
}

func (l *Layout) merge(base *Base, slice []float32, b int, apart bool) (map[string][]float32, error) {
	values := map[string][]float32{}
	spans := l.Spans(b)
	for i, s := range spans {
		v := slice[s.Offset : s.Offset+s.Len]
		switch {
		case apart && s.Kind == KindA:
			values[s.Name] = append(slices.Clone(v), make([]float32, Elements(s.Entry.Shape)-len(v))...)
			continue
		case apart && s.Kind == KindB:
			values[s.Name] = l.scaled(v, s.Entry.Shape[0], b)
			continue
		}
		switch s.Kind {
		case KindHead, KindAdapter:
			values[s.Name] = v
		case KindA, KindDelta:
			name := s.Changes()
			w, changed := values[name] // by the map's own difference and LoRA both
			if !changed {
				frozen, err := base.Tensor(name)
				if err != nil {
					return nil, err
				}
				w = slices.Clone(frozen)
				values[name] = w
			}
			if s.Kind == KindDelta {
				for j, x := range v {
					w[j] += x
				}
			} else if b > 0 { // followed by its B
				up := spans[i+1]
				AddProduct(w, slice[up.Offset:up.Offset+up.Len], v, b, float32(l.Method.Scale(b)))
			}
		}
	}
	return values, nil
}

// scaled is up [out, b] times the scale, with zeros behind each row up to the highest rank.
func (l *Layout) scaled(up []float32, out, b int) []float32 {
	most := l.Method.RMax
	w := make([]float32, out*most)
	for o := range out {
		for k, x := range up[o*b : (o+1)*b] {
			w[o*most+k] = float32(l.Method.Scale(b)) * x
		}
	}
	return w
}

// AddProduct adds scale * b a to w; b [out, rank], a [rank, in], w [out, in].
func AddProduct(w, b, a []float32, rank int, scale float32) {
	in := len(a) / rank
	for o := range len(b) / rank {
		row := w[o*in : (o+1)*in]
		for k := range rank {
			f := scale * b[o*rank+k]
			for j, x := range a[k*in : (k+1)*in] {
				row[j] += f * x
			}
		}
	}
}

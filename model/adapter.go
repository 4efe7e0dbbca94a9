package model

import (
	"fmt"
	"math"
)

// Adapter is the trained state: LoRA matrices at r_max and the head. Not safe
// for concurrent use.
type Adapter struct {
	layout  *Layout
	tensors [][]float32 // by entry of the layout, at r_max
}

// NewAdapter returns a fresh adapter: A Kaiming-uniform with a = sqrt 5, that
// is uniform in +-1/sqrt(in) (PEFT), B zero, the head's last map zero, so that
// the adapter changes nothing at the start and every device can rebuild it from
// the seed. Maps of the head before the last start as A does, a MaskedHead as it says.
// The generator is SplitMix64 keyed by seed: the values are part of the
// protocol (round 1 announces only the seed), and are not secret.
func NewAdapter(l *Layout, seed uint64) *Adapter {
	a := &Adapter{layout: l, tensors: make([][]float32, len(l.entries))}
	state := seed
	for i, e := range l.entries {
		t := make([]float32, Elements(e.Shape))
		switch e.Start {
		case StartUniform:
			bound := 1 / math.Sqrt(float64(e.Shape[1]))
			for j := range t {
				u := float64(splitMix64(&state)>>11) / (1 << 53)
				t[j] = float32((2*u - 1) * bound)
			}
		case StartOne:
			for j := range t {
				t[j] = 1
			}
		case StartIdentity:
			for j := range e.Shape[0] {
				t[j*e.Shape[1]+j] = 1
			}
		}
		a.tensors[i] = t
	}
	return a
}

func splitMix64(s *uint64) uint64 {
	*s += 0x9e3779b97f4a7c15
	z := *s
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Layout is the adapter's layout.
func (a *Adapter) Layout() *Layout { return a.layout }

// Slice copies the adapter at rank b into a new vector of Layout.Size(b). It
// panics on a rank outside 0..r_max.
func (a *Adapter) Slice(b int) []float32 {
	v := make([]float32, a.layout.Size(b))
	a.walk(b, v, func(t, v []float32) { copy(v, t) })
	return v
}

// SetSlice overwrites the part of the adapter that rank b uses; the rest stays.
func (a *Adapter) SetSlice(b int, v []float32) error {
	if err := a.check(b, v); err != nil {
		return err
	}
	a.walk(b, v, func(t, v []float32) { copy(t, v) })
	return nil
}

func (a *Adapter) check(b int, v []float32) error {
	if err := a.layout.CheckRank(b); err != nil {
		return err
	}
	if want := a.layout.Size(b); len(v) != want {
		return fmt.Errorf("model: adapter slice at rank %d has %d values, want %d", b, len(v), want)
	}
	return nil
}

// walk calls f with matching runs of the stored tensors and of the vector v at
// rank b, in the layout's order.
func (a *Adapter) walk(b int, v []float32, f func(t, v []float32)) {
	if err := a.layout.CheckRank(b); err != nil {
		panic(err)
	}
	for i, e := range a.layout.entries {
		t := a.tensors[i]
		switch e.Kind {
		case KindA:
			n := b * e.Shape[1]
			f(t[:n], v[:n])
			v = v[n:]
		case KindB:
			r := e.Shape[1]
			for row := range e.Shape[0] {
				f(t[row*r:row*r+b], v[row*b:(row+1)*b])
			}
			v = v[e.Shape[0]*b:]
		default:
			f(t, v[:len(t)])
			v = v[len(t):]
		}
	}
}

// Tensors copies the adapter at r_max as named tensors in the layout's order.
func (a *Adapter) Tensors() []Tensor {
	ts := make([]Tensor, len(a.tensors))
	for i, e := range a.layout.entries {
		ts[i] = Tensor{Name: e.Name, Shape: append([]int(nil), e.Shape...), Data: append([]float32(nil), a.tensors[i]...)}
	}
	return ts
}

// Clone returns an independent copy.
func (a *Adapter) Clone() *Adapter {
	c := &Adapter{layout: a.layout, tensors: make([][]float32, len(a.tensors))}
	for i, t := range a.tensors {
		c.tensors[i] = append([]float32(nil), t...)
	}
	return c
}

package fleet

import (
	"bytes"
	"iter"
	"slices"

	"github.com/starling-fl/starling/coordinator/round"
)

// Roll are devices of whom some are drawn, in the order of their identities, so that a draw
// from a seed does not depend on who enrolled first. It holds until a device is enrolled.
type Roll struct {
	order
	in []uint32 // places in the order
}

// Len counts them, Keys are their identities, and Who is the one at a place.
func (r Roll) Len() int               { return len(r.in) }
func (r Roll) Who(i int) round.Device { return r.who[r.in[i]] }
func (r Roll) Keys() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, at := range r.in {
			if !yield(r.keys[at][:]) {
				return
			}
		}
	}
}

// order is devices in the order of their identities. These stand beside each other: of
// ten million devices, to look each up would be most of a draw's time.
type order struct {
	keys [][32]byte
	who  []round.Device
}

// Roll are all that may be drawn. It costs a look at each, and what it takes to put those in
// their places who enrolled since it was asked for last.
func (f *Fleet) Roll() Roll {
	f.order.add(f.all[len(f.order.who):])
	out := make([]bool, len(f.all))
	for d := range f.out {
		out[d.N] = true
	}
	r := Roll{f.order, make([]uint32, 0, f.Active())}
	for at, n := range f.order.who {
		if !out[n] {
			r.in = append(r.in, uint32(at))
		}
	}
	return r
}

// add puts more devices in their places.
func (o *order) add(more []*Device) {
	more = slices.Clone(more)
	slices.SortFunc(more, func(a, b *Device) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	at := len(o.who) // from the end on nothing is overwritten before it is moved
	o.keys, o.who = append(o.keys, make([][32]byte, len(more))...), append(o.who, make([]round.Device, len(more))...)
	for to := len(o.who) - 1; len(more) > 0; to-- {
		if d := more[len(more)-1]; at == 0 || bytes.Compare(o.keys[at-1][:], d.ID[:]) < 0 {
			o.keys[to], o.who[to] = d.ID, d.N
			more = more[:len(more)-1]
		} else {
			at--
			o.keys[to], o.who[to] = o.keys[at], o.who[at]
		}
	}
}

package fleet

import (
	"bytes"
	"slices"

	"github.com/starling-fl/starling/coordinator/round"
)

// Roll are devices of whom some are drawn, in the order of their identities, so that a draw
// from a seed does not depend on who enrolled first.
type Roll struct {
	Keys [][]byte       // identities; of the fleet
	Who  []round.Device // the same devices
}

// order is the devices in the order of their identities. These stand beside each other: of
// ten million devices, to look each up would be most of a draw's time.
type order struct {
	keys [][32]byte
	who  []round.Device
}

// Roll are all that may be drawn. It costs what copying does, but for those who enrolled
// since it was asked for last.
func (f *Fleet) Roll() Roll {
	f.order.add(f.all[len(f.order.who):])
	out := make([]bool, len(f.all))
	for d := range f.out {
		out[d.N] = true
	}
	r := Roll{make([][]byte, 0, f.Active()), make([]round.Device, 0, f.Active())}
	for i, n := range f.order.who {
		if !out[n] {
			r.Keys, r.Who = append(r.Keys, f.order.keys[i][:]), append(r.Who, n)
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

//go:build !js

package columnar

import (
	"encoding/binary"
	"math/bits"
)

// hybrid reads numbers of a fixed width in runs and packed groups, as Parquet stores levels and places in dictionaries.
type hybrid struct {
	b      []byte
	width  int
	run    int // numbers that are left of this run
	packed bool
	value  uint64
	bit    int // in b, of a packed run
}

// next returns the next number; ok is false at the end and in damaged data.
func (h *hybrid) next() (x uint64, ok bool) {
	if h.width == 0 && len(h.b) == 0 && h.run == 0 {
		return 0, true // all are zero, and nothing need be stored
	}
	for h.run == 0 {
		if h.packed {
			h.b, h.bit, h.packed = h.b[min(len(h.b), (h.bit+7)/8):], 0, false
		}
		head, n := binary.Uvarint(h.b)
		if n <= 0 || head>>1 > 1<<31 {
			return 0, false
		}
		h.b = h.b[n:]
		h.run = int(head >> 1)
		if h.packed = head&1 == 1; h.packed {
			h.run *= 8
			continue
		}
		size := (h.width + 7) / 8
		if len(h.b) < size {
			return 0, false
		}
		h.value = 0
		for i := range size {
			h.value |= uint64(h.b[i]) << (8 * i)
		}
		h.b = h.b[size:]
	}
	h.run--
	if !h.packed {
		return h.value, true
	}
	x, ok = bitsAt(h.b, h.bit, h.width)
	h.bit += h.width
	return x, ok
}

// bitsAt is the number of so many bits, up to 64, that begins at a bit.
func bitsAt(b []byte, at, width int) (x uint64, ok bool) {
	if at+width > 8*len(b) {
		return 0, false
	}
	for got := 0; got < width; {
		part := min(8-at%8, width-got)
		x |= uint64(b[at/8]>>(at%8)) & (1<<part - 1) << got
		got, at = got+part, at+part
	}
	return x, true
}

// delta reads numbers that are stored as differences (DELTA_BINARY_PACKED).
type delta struct {
	b              []byte
	left           int // numbers that are left
	block, minis   int
	value          int64
	first          bool
	least          int64
	widths         []byte
	inMini, ofMini int
	bit            int
}

func newDelta(b []byte) (*delta, bool) {
	d := &delta{b: b, first: true}
	block, ok1 := d.uvarint()
	minis, ok2 := d.uvarint()
	left, ok3 := d.uvarint()
	value, ok4 := d.uvarint()
	if !ok1 || !ok2 || !ok3 || !ok4 || block == 0 || block > 1<<20 || minis == 0 || minis > block || block%minis != 0 || block/minis%8 != 0 || left > 1<<31 {
		return nil, false
	}
	d.block, d.minis, d.left, d.value = int(block), int(minis), int(left), unzigzag(value)
	d.ofMini = d.block / d.minis
	return d, true
}

func unzigzag(x uint64) int64 { return int64(x>>1) ^ -int64(x&1) }

func (d *delta) uvarint() (uint64, bool) {
	x, n := binary.Uvarint(d.b)
	if n <= 0 {
		return 0, false
	}
	d.b = d.b[n:]
	return x, true
}

func (d *delta) next() (int64, bool) {
	if d.left == 0 {
		return 0, false
	}
	d.left--
	if d.first {
		d.first = false
		return d.value, true
	}
	if d.inMini == 0 && !d.mini() {
		return 0, false
	}
	x, ok := bitsAt(d.b, d.bit, int(d.widths[0]))
	d.bit += int(d.widths[0])
	d.inMini--
	d.value += d.least + int64(x)
	return d.value, ok
}

// mini begins the next small block.
func (d *delta) mini() bool {
	if len(d.widths) > 0 {
		d.leave()
	}
	if len(d.widths) == 0 {
		least, ok := d.uvarint()
		if !ok || len(d.b) < d.minis {
			return false
		}
		d.least = unzigzag(least)
		d.widths, d.b = d.b[:d.minis], d.b[d.minis:]
	}
	d.inMini, d.bit = d.ofMini, 0
	return d.widths[0] <= 64
}

func (d *delta) leave() {
	d.b = d.b[min(len(d.b), d.ofMini*int(d.widths[0])/8):]
	d.widths = d.widths[1:]
}

// rest is what follows all numbers, of which none is left.
func (d *delta) rest() []byte {
	if len(d.widths) > 0 {
		d.leave()
	}
	return d.b
}

func widthOf(most int) int { return bits.Len(uint(most)) }

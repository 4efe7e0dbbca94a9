//go:build !js

package columnar

import "encoding/binary"

// flat is a FlatBuffers table, in which Arrow describes itself: its fields lie where a list of offsets says. What is not
// there, or lies outside, is zero.
type flat struct {
	b  []byte
	at int // -1: it is not there
}

var noTable = flat{at: -1}

// rootTable is a message's.
func rootTable(b []byte) flat { return flat{b, 0}.follow(0) }

func (f flat) u16(at int) int {
	if at < 0 || at+2 > len(f.b) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(f.b[at:]))
}

func (f flat) u32(at int) int {
	if at < 0 || at+4 > len(f.b) {
		return 0
	}
	return int(binary.LittleEndian.Uint32(f.b[at:]))
}

// follow is the table that the offset at a place leads to.
func (f flat) follow(at int) flat {
	to := at + f.u32(at)
	if to <= at || to+4 > len(f.b) {
		return noTable
	}
	return flat{f.b, to}
}

// field is where a table's field lies, by its number; -1: it is not there.
func (f flat) field(n int) int {
	if f.at < 0 {
		return -1
	}
	list := f.at - int(int32(f.u32(f.at)))
	if list < 0 || 4+2*n+2 > f.u16(list) {
		return -1
	}
	offset := f.u16(list + 4 + 2*n)
	if offset == 0 || f.at+offset >= len(f.b) {
		return -1
	}
	return f.at + offset
}

func (f flat) byte(n int) int {
	if at := f.field(n); at >= 0 {
		return int(f.b[at])
	}
	return 0
}

func (f flat) short(n int) int { return int(int16(f.u16(f.field(n)))) }

func (f flat) int(n int) int { return int(int32(f.u32(f.field(n)))) }

func (f flat) long(n int) int64 { return f.i64(f.field(n)) }

func (f flat) i64(at int) int64 {
	if at < 0 || at+8 > len(f.b) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(f.b[at:]))
}

func (f flat) table(n int) flat {
	at := f.field(n)
	if at < 0 {
		return noTable
	}
	return f.follow(at)
}

// vector is where a field's list begins, and how many items it has, of so many bytes each.
func (f flat) vector(n, size int) (at, count int) {
	at = f.field(n)
	if at < 0 {
		return 0, 0
	}
	list := f.follow(at)
	if list.at < 0 {
		return 0, 0
	}
	count = f.u32(list.at)
	if count > (len(f.b)-list.at-4)/size {
		return 0, 0
	}
	return list.at + 4, count
}

func (f flat) string(n int) string {
	at, count := f.vector(n, 1)
	return string(f.b[at : at+count])
}

// tables calls each with every table of a field's list.
func (f flat) tables(n int, each func(flat)) {
	at, count := f.vector(n, 4)
	for i := range count {
		each(f.follow(at + 4*i))
	}
}

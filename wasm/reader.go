package wasm

// reader decodes the binary format from a slice. The first failure sticks: later
// reads give zeros, so callers may check err once after a group of reads, and
// must do so before they trust a value as a bound.
type reader struct {
	buf   []byte
	pos   int
	base  int    // offset of buf in the file
	where string // for errors
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = refuse(r.where, format, args...)
	}
}

func (r *reader) left() int   { return len(r.buf) - r.pos }
func (r *reader) offset() int { return r.base + r.pos }

func (r *reader) byte() byte {
	if r.err != nil || r.pos >= len(r.buf) {
		r.fail("ends early, at offset %d", r.offset())
		return 0
	}
	r.pos++
	return r.buf[r.pos-1]
}

// bytes returns the next n bytes, sharing memory with the input.
func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > r.left() {
		r.fail("ends early: %d bytes wanted at offset %d, %d left", n, r.offset(), r.left())
		return nil
	}
	r.pos += n
	return r.buf[r.pos-n : r.pos]
}

// sub returns a reader over the next n bytes.
func (r *reader) sub(n int) *reader {
	base := r.offset()
	return &reader{buf: r.bytes(n), base: base, where: r.where}
}

// leb reads a LEB128 number of at most size bits, as its two's complement value.
func (r *reader) leb(size uint, signed bool) uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			if rest := size - shift; rest < 7 && !lastByteFits(b, rest, signed) {
				r.fail("number at offset %d does not fit %d bits", r.offset(), size)
				return 0
			}
			if signed && b&0x40 != 0 && shift+7 < 64 {
				v |= ^uint64(0) << (shift + 7)
			}
			return v
		}
		if shift+7 >= size {
			r.fail("number at offset %d is longer than %d bits", r.offset(), size)
			return 0
		}
	}
}

// lastByteFits reports whether the bits of the last byte beyond the number's
// size are zeros, or copies of the sign.
func lastByteFits(b byte, bits uint, signed bool) bool {
	if !signed {
		return b>>bits == 0
	}
	high := int8(b<<1) >> 1 >> (bits - 1)
	return high == 0 || high == -1
}

func (r *reader) u32() uint32 { return uint32(r.leb(32, false)) }
func (r *reader) s32() int32  { return int32(r.leb(32, true)) }
func (r *reader) s64() int64  { return int64(r.leb(64, true)) }

// count reads the length of a vector and holds it against a limit and against
// the bytes that are left: every element takes at least one.
func (r *reader) count(limit int, what string) int {
	n := r.u32()
	if r.err != nil {
		return 0
	}
	if int64(n) > int64(limit) {
		r.fail("%d %s, limit %d", n, what, limit)
		return 0
	}
	if int(n) > r.left() {
		r.fail("%d %s in %d bytes", n, what, r.left())
		return 0
	}
	return int(n)
}

// appendU32 appends v as unsigned LEB128.
func appendU32(dst []byte, v uint32) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

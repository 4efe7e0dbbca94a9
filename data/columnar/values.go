//go:build !js

package columnar

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// values reads a page's values one by one.
type values interface {
	// next is the next value's bytes, as plain encoding has them, without a length; ok is false at the end.
	next() (raw []byte, ok bool)
}

// plain values follow each other.
type plain struct {
	b    []byte
	size int // 0: the length precedes each, -1: each is a bit
	bit  int
}

func (p *plain) next() ([]byte, bool) {
	n := p.size
	switch {
	case n < 0:
		x, ok := bitsAt(p.b, p.bit, 1)
		p.bit++
		return []byte{byte(x)}, ok
	case n == 0:
		if len(p.b) < 4 {
			return nil, false
		}
		length := binary.LittleEndian.Uint32(p.b)
		if p.b = p.b[4:]; uint64(length) > uint64(len(p.b)) {
			return nil, false
		}
		n = int(length)
	}
	if n > len(p.b) {
		return nil, false
	}
	raw := p.b[:n]
	p.b = p.b[n:]
	return raw, true
}

// places point into a dictionary.
type places struct {
	at   hybrid
	dict [][]byte
}

func (p *places) next() ([]byte, bool) {
	i, ok := p.at.next()
	if !ok || i >= uint64(len(p.dict)) {
		return nil, false
	}
	return p.dict[i], true
}

// runs are truths.
type runs struct{ at hybrid }

func (r *runs) next() ([]byte, bool) {
	x, ok := r.at.next()
	return []byte{byte(x)}, ok
}

// deltas are whole numbers.
type deltas struct {
	from *delta
	buf  [8]byte
}

func (d *deltas) next() ([]byte, bool) {
	x, ok := d.from.next()
	binary.LittleEndian.PutUint64(d.buf[:], uint64(x))
	return d.buf[:], ok
}

// lengths precede all bytes; prefixes, where there are any, say how much of the value before is kept.
type lengths struct {
	prefix, each []int32
	b, last      []byte
}

func (l *lengths) next() ([]byte, bool) {
	if len(l.each) == 0 || int(l.each[0]) > len(l.b) {
		return nil, false
	}
	raw := l.b[:l.each[0]]
	l.b, l.each = l.b[l.each[0]:], l.each[1:]
	if l.prefix == nil {
		return raw, true
	}
	if len(l.prefix) == 0 || int(l.prefix[0]) > len(l.last) || len(l.last)+len(raw) > maxPage {
		return nil, false
	}
	l.last = append(l.last[:l.prefix[0]:l.prefix[0]], raw...)
	l.prefix = l.prefix[1:]
	return l.last, true
}

// lengthsOf reads up to most lengths.
func lengthsOf(b []byte, most int) (all []int32, rest []byte, ok bool) {
	d, ok := newDelta(b)
	if !ok || d.left > most {
		return nil, nil, false
	}
	all = make([]int32, d.left)
	for i := range all {
		n, ok := d.next()
		if !ok || n < 0 || n > maxPage {
			return nil, nil, false
		}
		all[i] = int32(n)
	}
	return all, d.rest(), true
}

// appendJSON appends a value as JSON.
func (c *column) appendJSON(dst, raw []byte) ([]byte, error) {
	switch {
	case c.opaque:
		return append(dst, "null"...), nil
	case len(raw) < max(1, c.size()) && c.kind != kindBytes:
		return dst, damaged("a value is too short")
	}
	switch c.kind {
	case kindBool:
		return strconv.AppendBool(dst, raw[0] != 0), nil
	case kindInt32:
		x := int32(binary.LittleEndian.Uint32(raw))
		if c.unsigned {
			return strconv.AppendUint(dst, uint64(uint32(x)), 10), nil
		}
		return c.appendNumber(dst, int64(x)), nil
	case kindInt64:
		x := binary.LittleEndian.Uint64(raw)
		if c.unsigned {
			return strconv.AppendUint(dst, x, 10), nil
		}
		return c.appendNumber(dst, int64(x)), nil
	case kindFloat:
		return appendFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))), 32), nil
	case kindDouble:
		return appendFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(raw)), 64), nil
	}
	return appendText(dst, raw, c.text)
}

// appendText appends text, or null for bytes that are none and are not said to be.
func appendText(dst, raw []byte, text bool) ([]byte, error) {
	switch {
	case len(dst)+len(raw) > MaxRow:
		return nil, damaged("a row has more than %d bytes", MaxRow)
	case utf8.Valid(raw):
		out, err := json.Marshal(string(raw))
		return append(dst, out...), err
	case text:
		return nil, damaged("it is no text in UTF-8")
	}
	return append(dst, "null"...), nil
}

func appendFloat(dst []byte, x float64, bits int) []byte {
	if x-x != 0 { // JSON has neither infinities nor NaN, which pandas writes for what is missing
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, x, 'g', -1, bits)
}

// appendNumber appends the name that the file gives a number, if it does.
func (c *column) appendNumber(dst []byte, x int64) []byte { return c.names.append(dst, x) }

//go:build !js

package columnar

import (
	"encoding/binary"
	"math"
	"strconv"
)

// append appends the value of a row as JSON.
func (x *array) append(dst []byte, i int) ([]byte, error) {
	if len(dst) > MaxRow {
		return dst, damaged("a row has more than %d bytes", MaxRow)
	}
	if i < 0 || i >= x.length {
		return dst, damaged("a place lies outside of its column")
	}
	if x.valid != nil && x.valid[i/8]>>(i%8)&1 == 0 || x.kind == arrowNull {
		return append(dst, "null"...), nil
	}
	switch x.kind {
	case arrowInt:
		v := x.number(i)
		switch {
		case x.words != nil && (v < 0 || v >= int64(x.words.length)):
			return dst, damaged("a place lies outside of its dictionary")
		case x.words != nil:
			return x.words.append(dst, int(v))
		case x.bits == 64 && !x.signed:
			return strconv.AppendUint(dst, uint64(v), 10), nil
		}
		return x.names.append(dst, v), nil
	case arrowFloat:
		return x.float(dst, i), nil
	case arrowBool:
		return strconv.AppendBool(dst, x.data[i/8]>>(i%8)&1 == 1), nil
	case arrowText, arrowLargeText, arrowBytes, arrowLargeBytes:
		from, to := x.span(i)
		if from < 0 || to < from || to > int64(len(x.data)) {
			return dst, damaged("a text lies outside of its column")
		}
		return appendText(dst, x.data[from:to], x.kind == arrowText || x.kind == arrowLargeText)
	case arrowTextView, arrowBytesView:
		return x.view(dst, i)
	case arrowStruct:
		return x.object(dst, i)
	}
	from, to := x.span(i)
	dst = append(dst, '[')
	for j := from; j < to; j++ {
		if j > from {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = x.children[0].append(dst, int(j)); err != nil {
			return dst, err
		}
	}
	if from < 0 || to < from {
		return dst, damaged("a list lies outside of its column")
	}
	return append(dst, ']'), nil
}

// span is from where to where a text or a list goes.
func (x *array) span(i int) (from, to int64) {
	switch x.kind {
	case arrowFixedList:
		return int64(i) * int64(x.bits), int64(i+1) * int64(x.bits)
	case arrowLargeText, arrowLargeBytes, arrowLargeList:
		return int64(binary.LittleEndian.Uint64(x.offsets[8*i:])), int64(binary.LittleEndian.Uint64(x.offsets[8*i+8:]))
	}
	return int64(int32(binary.LittleEndian.Uint32(x.offsets[4*i:]))), int64(int32(binary.LittleEndian.Uint32(x.offsets[4*i+4:])))
}

func (x *array) number(i int) int64 {
	switch b := x.data; {
	case x.bits == 8 && x.signed:
		return int64(int8(b[i]))
	case x.bits == 8:
		return int64(b[i])
	case x.bits == 16 && x.signed:
		return int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
	case x.bits == 16:
		return int64(binary.LittleEndian.Uint16(b[2*i:]))
	case x.bits == 32 && x.signed:
		return int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	case x.bits == 32:
		return int64(binary.LittleEndian.Uint32(b[4*i:]))
	default:
		return int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

func (x *array) float(dst []byte, i int) []byte {
	switch x.bits {
	case 32:
		return appendFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(x.data[4*i:]))), 32)
	case 64:
		return appendFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(x.data[8*i:])), 64)
	}
	return append(dst, "null"...)
}

// view appends a text of which the first bytes, or all, are beside its length.
func (x *array) view(dst []byte, i int) ([]byte, error) {
	at := x.data[16*i : 16*i+16]
	n := binary.LittleEndian.Uint32(at)
	raw := at[4:]
	if n > 12 {
		from, in := binary.LittleEndian.Uint32(at[12:]), binary.LittleEndian.Uint32(at[8:])
		if uint64(in) >= uint64(len(x.extra)) || uint64(from)+uint64(n) > uint64(len(x.extra[in])) {
			return dst, damaged("a text lies outside of its column")
		}
		raw = x.extra[in][from:]
	}
	return appendText(dst, raw[:n], x.kind == arrowTextView)
}

func (x *array) object(dst []byte, i int) ([]byte, error) {
	dst = append(dst, '{')
	for k, c := range x.children {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, c.name...), ':')
		var err error
		if dst, err = c.append(dst, i); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

package cbor

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"unicode/utf8"
)

// Further major types, and the simple values and floats of the last one.
const (
	majorNegative = 1 << 5
	majorText     = 3 << 5

	simpleFalse = 7<<5 | 20
	simpleTrue  = 7<<5 | 21
	simpleNull  = 7<<5 | 22
	float16     = 7<<5 | 25
	float32bits = 7<<5 | 26
	float64bits = 7<<5 | 27
)

// A Codec writes Go values in core deterministic encoding, and reads that encoding alone. A struct is an array of
// its exported fields, those of an embedded struct among them; the tag `cbor:",optional"` leaves a last field out
// where it is zero. Beside structs it takes integers, finite floats, booleans, strings, slices, arrays and
// pointers to these. Slices and arrays of bytes are byte strings. A type nests as deep as it says, so that no
// message can nest deeper.
type Codec struct {
	MaxArray int // elements of a slice that is read
	// NilEmpty writes a nil slice as an empty one, and refuses null in its place. Otherwise nil is null.
	NilEmpty bool
}

// ErrValue is a value that has no encoding here: a number that is not finite, or a type that a Codec does not take.
var ErrValue = errors.New("a value without a CBOR encoding")

// Append appends v, or what it points to.
func (c Codec) Append(dst []byte, v any) ([]byte, error) {
	return c.write(dst, pointed(v))
}

// Unmarshal fills what v points to. It accepts exactly what Append writes, and copies byte strings. The error is
// an *Error.
func (c Codec) Unmarshal(data []byte, v any) error {
	r := NewReader(data)
	c.read(&r, pointed(v), "message")
	return r.Done()
}

func pointed(v any) reflect.Value {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	return value
}

// layout is a struct's fields in their order.
type layout struct {
	fields   []field
	optional bool // the last one
}

type field struct {
	name  string
	index []int
}

var layouts sync.Map // of reflect.Type

func layoutOf(t reflect.Type) *layout {
	if known, ok := layouts.Load(t); ok {
		return known.(*layout)
	}
	l := &layout{}
	l.add(t, nil)
	layouts.Store(t, l)
	return l
}

func (l *layout) add(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), at...), i)
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			l.add(f.Type, index)
		case f.IsExported():
			l.fields = append(l.fields, field{f.Name, index})
			l.optional = f.Tag.Get("cbor") == ",optional"
		}
	}
}

func isBytes(t reflect.Type) bool { return t.Elem().Kind() == reflect.Uint8 }

func (c Codec) write(b []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, simpleTrue), nil
		}
		return append(b, simpleFalse), nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return AppendUint(b, v.Uint()), nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		if n := v.Int(); n < 0 {
			return appendHead(b, majorNegative, uint64(-1-n)), nil
		}
		return AppendUint(b, uint64(v.Int())), nil
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return b, fmt.Errorf("%w: %v", ErrValue, f)
		}
		return appendFloat(b, v.Float()), nil
	case reflect.String:
		return append(appendHead(b, majorText, uint64(v.Len())), v.String()...), nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, simpleNull), nil
		}
		return c.write(b, v.Elem())
	case reflect.Struct:
		return c.writeStruct(b, v)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() && !c.NilEmpty {
			return append(b, simpleNull), nil
		}
		if isBytes(v.Type()) {
			b = appendHead(b, majorBytes, uint64(v.Len()))
			for i := 0; i < v.Len() && v.Kind() == reflect.Array; i++ { // which need not be addressable
				b = append(b, byte(v.Index(i).Uint()))
			}
			if v.Kind() == reflect.Slice {
				b = append(b, v.Bytes()...)
			}
			return b, nil
		}
		b = AppendArray(b, v.Len())
		var err error
		for i := 0; i < v.Len() && err == nil; i++ {
			b, err = c.write(b, v.Index(i))
		}
		return b, err
	}
	return b, fmt.Errorf("%w: of kind %s", ErrValue, v.Kind())
}

func (c Codec) writeStruct(b []byte, v reflect.Value) ([]byte, error) {
	l := layoutOf(v.Type())
	fields := l.fields
	if n := len(fields) - 1; l.optional && v.FieldByIndex(fields[n].index).IsZero() {
		fields = fields[:n]
	}
	b = AppendArray(b, len(fields))
	var err error
	for _, f := range fields {
		if b, err = c.write(b, v.FieldByIndex(f.index)); err != nil {
			return b, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return b, nil
}

// appendFloat appends the shortest of three floats that is exact.
func appendFloat(b []byte, f float64) []byte {
	bits := math.Float64bits(f)
	if float64(float32(f)) != f {
		return append(b, float64bits, byte(bits>>56), byte(bits>>48), byte(bits>>40), byte(bits>>32), byte(bits>>24), byte(bits>>16), byte(bits>>8), byte(bits))
	}
	if half, ok := halfOf(f); ok {
		return append(b, float16, byte(half>>8), byte(half))
	}
	single := math.Float32bits(float32(f))
	return append(b, float32bits, byte(single>>24), byte(single>>16), byte(single>>8), byte(single))
}

// halfOf is f as a float16, where that is exact.
func halfOf(f float64) (uint16, bool) {
	sign := uint16(math.Float64bits(f) >> 48 & 0x8000)
	frac, exp := math.Frexp(math.Abs(f)) // frac in [.5, 1)
	switch {
	case f == 0:
		return sign, true
	case exp > 16 || exp < -23:
		return 0, false
	}
	// Below 2^-14 its steps are of 2^-24, above of 2^-10 of its own power of two.
	least := max(exp-11, -24)
	steps := math.Ldexp(frac, exp-least)
	if steps != math.Trunc(steps) {
		return 0, false
	}
	if exp < -13 {
		return sign | uint16(steps), true
	}
	return sign | uint16(exp+14)<<10 | uint16(steps)&0x3ff, true
}

func fromHalf(h uint16) float64 {
	exp, frac := int(h>>10&0x1f), float64(h&0x3ff)
	f := math.Ldexp(frac, -24)
	if exp > 0 {
		f = math.Ldexp(frac+1024, exp-25)
	}
	if h&0x8000 != 0 {
		f = math.Copysign(f, -1)
	}
	return f
}

// read fills v; what is for errors.
func (c Codec) read(r *Reader, v reflect.Value, what string) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.simple(what, simpleFalse, simpleTrue) == simpleTrue)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		v.SetUint(r.Uint(math.MaxUint64>>(64-v.Type().Bits()), what))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		major := byte(majorUint)
		if r.next()&0xe0 == majorNegative {
			major = majorNegative
		}
		n, most := r.head(major, what), uint64(math.MaxInt64)>>(64-v.Type().Bits())
		if n > most {
			r.fail(Error{reason: tooLarge, what: what, got: n, most: most})
			return
		}
		if v.SetInt(int64(n)); major == majorNegative {
			v.SetInt(-1 - int64(n))
		}
	case reflect.Float32, reflect.Float64:
		f := r.float(what)
		if v.OverflowFloat(f) || v.Kind() == reflect.Float32 && float64(float32(f)) != f {
			r.fail(Error{reason: otherFloat, what: what})
			return
		}
		v.SetFloat(f)
	case reflect.String:
		v.SetString(r.text(what))
	case reflect.Pointer:
		if r.null() {
			return
		}
		to := reflect.New(v.Type().Elem())
		c.read(r, to.Elem(), what)
		v.Set(to)
	case reflect.Struct:
		l := layoutOf(v.Type())
		least := len(l.fields)
		if l.optional {
			least--
		}
		n := r.Array(least, len(l.fields), what)
		for _, f := range l.fields[:min(n, len(l.fields))] {
			c.read(r, v.FieldByIndex(f.index), f.name)
		}
		if l.optional && n > least && r.OK() && v.FieldByIndex(l.fields[least].index).IsZero() {
			r.fail(Error{reason: otherSpelling, what: what})
		}
	case reflect.Array:
		if isBytes(v.Type()) {
			reflect.Copy(v, reflect.ValueOf(r.Bytes(v.Len(), v.Len(), what)))
			return
		}
		r.Array(v.Len(), v.Len(), what)
		for i := 0; i < v.Len() && r.OK(); i++ {
			c.read(r, v.Index(i), what)
		}
	case reflect.Slice:
		c.readSlice(r, v, what)
	default:
		r.fail(Error{reason: otherKind, what: what})
	}
}

func (c Codec) readSlice(r *Reader, v reflect.Value, what string) {
	if !c.NilEmpty && r.null() {
		return
	}
	if isBytes(v.Type()) {
		b := r.Bytes(0, math.MaxInt, what)
		if r.OK() {
			v.SetBytes(append(make([]byte, 0, len(b)), b...))
		}
		return
	}
	n := r.Array(0, c.MaxArray, what)
	if !r.OK() {
		return
	}
	// Each element has a byte at least, and takes memory once it is read: a head alone takes none.
	v.Set(reflect.MakeSlice(v.Type(), 0, min(n, len(r.b), 16)))
	for i := 0; i < n && r.OK(); i++ {
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		c.read(r, v.Index(i), what)
	}
}

// next is the byte that is to be read, 0 at the end.
func (r *Reader) next() byte {
	if len(r.b) == 0 {
		return 0
	}
	return r.b[0]
}

// null takes null, if that is next.
func (r *Reader) null() bool {
	is := r.next() == simpleNull
	if is {
		r.b = r.b[1:]
	}
	return is
}

// simple reads one of two simple values.
func (r *Reader) simple(what string, one, other byte) byte {
	b := r.next()
	switch {
	case !r.OK():
		return 0
	case len(r.b) == 0:
		r.fail(Error{reason: truncated, what: what})
		return 0
	case b != one && b != other:
		r.fail(Error{reason: otherSimple, what: what, got: uint64(b)})
		return 0
	}
	r.b = r.b[1:]
	return b
}

func (r *Reader) text(what string) string {
	n := r.head(majorText, what)
	switch {
	case !r.OK():
		return ""
	case n > uint64(len(r.b)):
		r.fail(Error{reason: truncated, what: what})
		return ""
	}
	text := string(r.b[:n])
	if r.b = r.b[n:]; !utf8.ValidString(text) {
		r.fail(Error{reason: otherText, what: what})
		return ""
	}
	return text
}

// float reads a finite one in its shortest form.
func (r *Reader) float(what string) float64 {
	if !r.OK() {
		return 0
	}
	size := map[byte]int{float16: 2, float32bits: 4, float64bits: 8}[r.next()]
	switch {
	case len(r.b) == 0 || len(r.b) < 1+size:
		r.fail(Error{reason: truncated, what: what})
		return 0
	case size == 0:
		r.fail(Error{reason: otherFloat, what: what})
		return 0
	}
	var bits uint64
	for _, x := range r.b[1 : 1+size] {
		bits = bits<<8 | uint64(x)
	}
	f := math.Float64frombits(bits)
	switch size {
	case 2:
		f = fromHalf(uint16(bits))
		if bits>>10&0x1f == 0x1f {
			f = math.NaN() // or infinite
		}
	case 4:
		f = float64(math.Float32frombits(uint32(bits)))
	}
	var again [9]byte
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		r.fail(Error{reason: otherFloat, what: what})
		return 0
	case string(appendFloat(again[:0], f)) != string(r.b[:1+size]):
		r.fail(Error{reason: otherSpelling, what: what})
		return 0
	}
	r.b = r.b[1+size:]
	return f
}

//go:build !js

package columnar

import (
	"encoding/binary"
	"io"
)

// Types of Thrift's compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// thrift reads Thrift's compact protocol, in which Parquet describes itself. The first error stays; io.ErrUnexpectedEOF
// says that more bytes are needed.
type thrift struct {
	b     []byte
	err   error
	depth int
	seen  int // chunks
}

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.b = nil
}

func (t *thrift) byte() byte {
	if len(t.b) == 0 {
		t.fail(io.ErrUnexpectedEOF)
		return 0
	}
	x := t.b[0]
	t.b = t.b[1:]
	return x
}

func (t *thrift) uvarint() uint64 {
	x, n := binary.Uvarint(t.b)
	switch {
	case n == 0:
		t.fail(io.ErrUnexpectedEOF)
		return 0
	case n < 0:
		t.fail(damaged("a number is too long"))
		return 0
	}
	t.b = t.b[n:]
	return x
}

func (t *thrift) int() int64 {
	x := t.uvarint()
	return int64(x>>1) ^ -int64(x&1)
}

// take returns the next n bytes.
func (t *thrift) take(n uint64) []byte {
	if n > uint64(len(t.b)) {
		t.fail(io.ErrUnexpectedEOF)
		return nil
	}
	x := t.b[:n]
	t.b = t.b[n:]
	return x
}

func (t *thrift) string() string { return string(t.take(t.uvarint())) }

// fields calls each with every field of a struct; each must read it, or skip it.
func (t *thrift) fields(each func(id int64, kind byte)) {
	if t.depth++; t.depth > maxDepth {
		t.fail(damaged("it is nested more than %d deep", maxDepth))
	}
	id := int64(0)
	for t.err == nil {
		head := t.byte()
		if head&15 == 0 {
			break
		}
		if head>>4 != 0 {
			id += int64(head >> 4)
		} else {
			id = t.int()
		}
		each(id, head&15)
	}
	t.depth--
}

// list calls each for every element of a list, which it must read.
func (t *thrift) list(each func(kind byte)) {
	head := t.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	if n > uint64(len(t.b)) {
		t.fail(io.ErrUnexpectedEOF)
	}
	for ; n > 0 && t.err == nil; n-- {
		each(head & 15)
	}
}

func (t *thrift) skip(kind byte) { t.skipIn(kind, false) }

// skipIn skips a value; a truth within a list takes a byte.
func (t *thrift) skipIn(kind byte, list bool) {
	switch {
	case kind == thriftTrue || kind == thriftFalse:
		if list {
			t.byte()
		}
	case kind == thriftByte:
		t.byte()
	case kind > thriftByte && kind < thriftDouble:
		t.uvarint()
	case kind == thriftDouble:
		t.take(8)
	case kind == thriftBinary:
		t.take(t.uvarint())
	case kind == thriftList || kind == thriftSet:
		if t.depth++; t.depth > maxDepth {
			t.fail(damaged("it is nested more than %d deep", maxDepth))
		}
		t.list(func(kind byte) { t.skipIn(kind, true) })
		t.depth--
	case kind == thriftStruct:
		t.fields(func(_ int64, kind byte) { t.skip(kind) })
	case kind == thriftMap:
		if t.uvarint() > 0 {
			t.fail(damaged("it has a map, which Parquet does not use"))
		}
	default:
		t.fail(damaged("type %d is not known", kind))
	}
}

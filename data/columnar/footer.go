//go:build !js

package columnar

import (
	"bytes"
	"encoding/binary"
	"io"
)

// Kinds of values in Parquet.
const (
	kindBool = iota
	kindInt32
	kindInt64
	kindInt96
	kindFloat
	kindDouble
	kindBytes
	kindFixed
	kindGroup = -1
)

// element is one line of a schema: a column, or a group of columns.
type element struct {
	kind, length int
	repetition   int // 0 required, 1 optional, 2 repeated
	name         string
	children     int
	converted    int // -1: none
	text         bool
	list         bool
	unsigned     bool
	decimal      bool
}

// chunk is a column within a group of rows.
type chunk struct {
	kind, codec          int
	size                 int64
	data, dictionary     int64
	encrypted, elsewhere bool
}

// rows is a group of rows.
type rows struct {
	columns []chunk
	count   int64
}

// footer is what a Parquet file says about itself.
type footer struct {
	schema []element
	groups []rows
	meta   map[string]string
}

// readFooter reads the end of a file.
func readFooter(r io.ReaderAt, size int64) (*footer, error) {
	var tail [8]byte
	if size < 12 {
		return nil, damaged("%d bytes are no Parquet file", size)
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return nil, damaged("%w", err)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	switch {
	case bytes.Equal(tail[4:], []byte("PARE")):
		return nil, damaged("it is encrypted")
	case !bytes.Equal(tail[4:], []byte("PAR1")):
		return nil, damaged("it does not end as a Parquet file does: is it complete?")
	case n > size-12:
		return nil, damaged("what it says of itself has %d bytes, the file has %d", n, size)
	case n > maxFooter:
		return nil, damaged("what it says of itself has %d bytes, the limit is %d", n, maxFooter)
	}
	raw := make([]byte, n)
	if _, err := r.ReadAt(raw, size-8-n); err != nil {
		return nil, damaged("%w", err)
	}
	f := &footer{meta: map[string]string{}}
	t := &thrift{b: raw}
	t.fields(func(id int64, kind byte) {
		switch {
		case id == 2 && kind == thriftList:
			t.list(func(byte) { f.schema = append(f.schema, t.element()) })
		case id == 4 && kind == thriftList:
			t.list(func(byte) { f.groups = append(f.groups, t.rows()) })
		case id == 5 && kind == thriftList:
			t.list(func(byte) {
				key, value := "", ""
				t.fields(func(id int64, kind byte) {
					switch {
					case id == 1 && kind == thriftBinary:
						key = t.string()
					case id == 2 && kind == thriftBinary:
						value = t.string()
					default:
						t.skip(kind)
					}
				})
				f.meta[key] = value
			})
		default:
			t.skip(kind)
		}
		if len(f.schema) > maxColumns {
			t.fail(damaged("it has more than %d columns", maxColumns))
		}
	})
	if t.err != nil {
		return nil, damaged("what it says of itself: %w", t.err)
	}
	return f, nil
}

// number reads an integer into x, and skips what is none.
func (t *thrift) number(kind byte, x *int) {
	switch {
	case kind == thriftByte:
		*x = int(int8(t.byte()))
	case kind > thriftByte && kind < thriftDouble:
		*x = int(t.int())
	default:
		t.skip(kind)
	}
}

func (t *thrift) element() element {
	e := element{kind: kindGroup, converted: -1}
	t.fields(func(id int64, kind byte) {
		switch id {
		case 1:
			t.number(kind, &e.kind)
		case 2:
			t.number(kind, &e.length)
		case 3:
			t.number(kind, &e.repetition)
		case 4:
			if kind != thriftBinary {
				t.fail(damaged("a column has no name"))
				return
			}
			e.name = t.string()
		case 5:
			t.number(kind, &e.children)
		case 6:
			t.number(kind, &e.converted)
		case 10:
			if kind != thriftStruct {
				t.skip(kind)
				return
			}
			t.fields(func(id int64, kind byte) { // the logical type
				switch id {
				case 1, 4, 12: // a string, an enumeration, JSON
					e.text = true
				case 3:
					e.list = true
				case 5:
					e.decimal = true
				}
				t.skip(kind)
			})
		default:
			t.skip(kind)
		}
	})
	switch e.converted {
	case 0, 4, 19:
		e.text = true
	case 3:
		e.list = true
	case 5:
		e.decimal = true
	case 11, 12, 13, 14:
		e.unsigned = true
	}
	return e
}

func (t *thrift) rows() rows {
	var g rows
	count := 0
	t.fields(func(id int64, kind byte) {
		switch {
		case id == 1 && kind == thriftList:
			t.list(func(byte) { g.columns = append(g.columns, t.chunk()) })
		case id == 3:
			t.number(kind, &count)
		default:
			t.skip(kind)
		}
	})
	g.count = int64(count)
	return g
}

func (t *thrift) chunk() chunk {
	c := chunk{kind: -1}
	if t.seen++; t.seen > maxChunks {
		t.fail(damaged("it has more than %d parts of columns", maxChunks))
	}
	t.fields(func(id int64, kind byte) {
		switch {
		case id == 1:
			c.elsewhere = true
			t.skip(kind)
		case id == 3 && kind == thriftStruct:
			var size, data, dictionary int
			t.fields(func(id int64, kind byte) {
				switch id {
				case 1:
					t.number(kind, &c.kind)
				case 4:
					t.number(kind, &c.codec)
				case 7:
					t.number(kind, &size)
				case 9:
					t.number(kind, &data)
				case 11:
					t.number(kind, &dictionary)
				default:
					t.skip(kind)
				}
			})
			c.size, c.data, c.dictionary = int64(size), int64(data), int64(dictionary)
		case id == 8 || id == 9:
			c.encrypted = true
			t.skip(kind)
		default:
			t.skip(kind)
		}
	})
	return c
}

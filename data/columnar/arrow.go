//go:build !js

package columnar

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Arrow's types, as its schema numbers them.
const (
	arrowNull       = 1
	arrowInt        = 2
	arrowFloat      = 3
	arrowBytes      = 4
	arrowText       = 5
	arrowBool       = 6
	arrowList       = 12
	arrowStruct     = 13
	arrowFixedList  = 16
	arrowMap        = 17
	arrowLargeBytes = 19
	arrowLargeText  = 20
	arrowLargeList  = 21
	arrowBytesView  = 23
	arrowTextView   = 24
	arrowListView   = 25
	arrowLargeView  = 26
	arrowRunEnd     = 22
	arrowUnion      = 14
)

// field is a column of an Arrow schema.
type field struct {
	name       string // as JSON
	kind, bits int
	signed     bool
	names      names
	children   []*field
	dictionary int64 // -1: none
	index      *field
}

// Arrow calls each with every row of a stream, or of a file, as Parquet does: datasets keeps these in its cache and in the
// folders that save_to_disk writes.
func Arrow(r io.Reader, each func(row int, object []byte) error) error {
	a := &arrowReader{r: r, dictionaries: map[int64]*array{}, fields: map[int64]*field{}}
	magic := make([]byte, 8)
	if _, err := io.ReadFull(r, magic); err != nil {
		return damaged("it ends early")
	}
	if !bytes.Equal(magic, []byte("ARROW1\x00\x00")) {
		a.r = io.MultiReader(bytes.NewReader(magic), r)
	}
	row := 0
	for {
		kind, head, body, err := a.message()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if a.schema == nil && kind != 1 {
			return damaged("it does not begin with a schema")
		}
		switch kind {
		case 1:
			if err := a.readSchema(head); err != nil {
				return err
			}
		case 2:
			if err := a.readDictionary(head, body); err != nil {
				return err
			}
		case 3:
			if row, err = a.rows(head, body, row, each); err != nil {
				return err
			}
		}
	}
	if a.schema == nil {
		return damaged("it has no schema")
	}
	return nil
}

type arrowReader struct {
	r            io.Reader
	schema       []*field
	fields       map[int64]*field // of dictionaries
	dictionaries map[int64]*array
	count        int
	buf          []byte
}

// maxBatch bounds a message's body, in bytes.
const maxBatch = maxHeld

// message reads the next one.
func (a *arrowReader) message() (kind int, head flat, body []byte, err error) {
	var word [4]byte
	size := uint32(0)
	for i := 0; ; i++ {
		if n, err := io.ReadFull(a.r, word[:]); n == 0 && errors.Is(err, io.EOF) {
			return 0, noTable, nil, io.EOF // some writers leave the end out
		} else if err != nil {
			return 0, noTable, nil, damaged("it ends early")
		}
		if size = binary.LittleEndian.Uint32(word[:]); size != 0xffffffff || i > 0 {
			break
		}
	}
	switch {
	case size == 0:
		return 0, noTable, nil, io.EOF
	case size > maxFooter:
		return 0, noTable, nil, damaged("a message's head has %d bytes, the limit is %d", size, maxFooter)
	}
	raw, err := readSome(a.r, int64(size))
	if err != nil {
		return 0, noTable, nil, err
	}
	m := rootTable(raw)
	length := m.long(3)
	if length < 0 || length > maxBatch {
		return 0, noTable, nil, damaged("a batch has %d bytes, the limit is %d: write smaller ones", length, maxBatch)
	}
	body, err = readSome(a.r, length)
	return m.byte(1), m.table(2), body, err
}

// readSome reads so many bytes, and takes memory for those that are there alone.
func readSome(r io.Reader, n int64) ([]byte, error) {
	var b bytes.Buffer
	if m, err := io.CopyN(&b, r, n); errors.Is(err, io.EOF) && m < n {
		return nil, damaged("it ends early")
	} else if err != nil {
		return nil, damaged("%w", err)
	}
	return b.Bytes(), nil
}

func (a *arrowReader) readSchema(s flat) error {
	if a.schema != nil {
		return damaged("it has a second schema")
	}
	if s.short(0) != 0 {
		return damaged("its numbers are big-endian")
	}
	classes := map[string]names{}
	s.tables(2, func(t flat) {
		if t.string(0) == "huggingface" {
			classes = features(t.string(1))
		}
	})
	a.schema = []*field{}
	var err error
	s.tables(1, func(t flat) {
		if err == nil {
			var f *field
			f, err = a.field(t, classes[t.string(0)], 0)
			a.schema = append(a.schema, f)
		}
	})
	if err == nil && len(a.schema) == 0 {
		err = damaged("it has no columns")
	}
	return err
}

func (a *arrowReader) field(t flat, classes names, depth int) (*field, error) {
	if a.count++; a.count > maxColumns || depth > maxDepth {
		return nil, damaged("its schema has more than %d columns, or is nested more than %d deep", maxColumns, maxDepth)
	}
	name, err := json.Marshal(t.string(0))
	if err != nil {
		return nil, err
	}
	f := &field{name: string(name), kind: t.byte(2), names: classes, dictionary: -1}
	kind := t.table(3)
	switch f.kind {
	case arrowInt:
		f.bits, f.signed = kind.int(0), kind.byte(1) != 0
		if f.bits != 8 && f.bits != 16 && f.bits != 32 && f.bits != 64 {
			return nil, damaged("column %s has numbers of %d bits", f.name, f.bits)
		}
	case arrowFloat:
		f.bits = 16 << max(kind.short(0), 0)
		if f.bits != 16 && f.bits != 32 && f.bits != 64 {
			return nil, damaged("column %s has numbers of a precision that is not known", f.name)
		}
	case arrowFixedList:
		f.bits = kind.int(0)
	case arrowRunEnd, arrowUnion, arrowListView, arrowLargeView:
		return nil, damaged("column %s is of a kind that is not read (number %d of Arrow's): write it as a plain list, or leave it out", f.name, f.kind)
	}
	t.tables(5, func(c flat) {
		if err == nil {
			var child *field
			child, err = a.field(c, classes, depth+1)
			f.children = append(f.children, child)
		}
	})
	if err != nil {
		return nil, err
	}
	if lists := f.kind == arrowList || f.kind == arrowLargeList || f.kind == arrowFixedList || f.kind == arrowMap; lists && len(f.children) != 1 {
		return nil, damaged("column %s is a list of %d columns", f.name, len(f.children))
	}
	if d := t.table(4); d.at >= 0 {
		f.dictionary = d.long(0)
		f.index = &field{name: f.name, kind: arrowInt, bits: 32, signed: true, dictionary: -1}
		if i := d.table(1); i.at >= 0 {
			f.index.bits, f.index.signed = i.int(0), i.byte(1) != 0
		}
		if b := f.index.bits; b != 8 && b != 16 && b != 32 && b != 64 {
			return nil, damaged("column %s has a dictionary by numbers of %d bits", f.name, b)
		}
		words := *f
		words.dictionary = -1
		a.fields[f.dictionary] = &words
	}
	return f, nil
}

func (a *arrowReader) readDictionary(t flat, body []byte) error {
	id := t.long(0)
	f := a.fields[id]
	if f == nil {
		return damaged("it has a dictionary that no column uses")
	}
	if t.byte(2) != 0 {
		return damaged("a dictionary grows, which is not read: write the column as text")
	}
	b, err := newBatch(t.table(1), body)
	if err != nil {
		return err
	}
	words, err := a.array(b, f)
	a.dictionaries[id] = words
	return err
}

func (a *arrowReader) rows(t flat, body []byte, row int, each func(int, []byte) error) (int, error) {
	b, err := newBatch(t, body)
	if err != nil {
		return row, err
	}
	n := t.long(0)
	var columns []*array
	for _, f := range a.schema {
		x, err := a.array(b, f)
		if err != nil {
			return row, err
		}
		if int64(x.length) != n {
			return row, damaged("column %s has %d values, its batch %d", f.name, x.length, n)
		}
		columns = append(columns, x)
	}
	for i := range int(n) {
		row++
		dst := append(a.buf[:0], '{')
		for k, x := range columns {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, a.schema[k].name...), ':')
			if dst, err = x.append(dst, i); err != nil {
				return row, fmt.Errorf("row %d, column %s: %w", row, a.schema[k].name, err)
			}
		}
		a.buf = append(dst, '}')
		if err := each(row, a.buf); err != nil {
			return row, err
		}
	}
	return row, nil
}

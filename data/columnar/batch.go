//go:build !js

package columnar

import (
	"bytes"
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

// batch is a group of rows: its columns' lengths and buffers, in the order of the schema's fields.
type batch struct {
	nodes   [][2]int64 // length, and how many are null
	buffers [][2]int64 // where in body, and length
	views   []int64    // how many buffers a column of views has
	body    []byte
	codec   int // -1: not compressed
	held    int
}

// array is a field's part of a batch.
type array struct {
	*field
	length   int
	valid    []byte // nil: all are there
	data     []byte
	offsets  []byte
	children []*array
	words    *array // of a dictionary
	extra    [][]byte
}

func newBatch(t flat, body []byte) (*batch, error) {
	b := &batch{body: body, codec: -1}
	at, n := t.vector(1, 16)
	for i := range n {
		b.nodes = append(b.nodes, [2]int64{t.i64(at + 16*i), t.i64(at + 16*i + 8)})
	}
	at, n = t.vector(2, 16)
	for i := range n {
		b.buffers = append(b.buffers, [2]int64{t.i64(at + 16*i), t.i64(at + 16*i + 8)})
	}
	at, n = t.vector(4, 8)
	for i := range n {
		b.views = append(b.views, t.i64(at+8*i))
	}
	if c := t.table(3); c.at >= 0 {
		if b.codec = c.byte(0); b.codec != 1 {
			return nil, damaged("it is compressed by LZ4, which is not read: write it without compression, or with zstd")
		}
	}
	return b, nil
}

// buffer is the next one, unpacked.
func (b *batch) buffer() ([]byte, error) {
	if len(b.buffers) == 0 {
		return nil, damaged("a batch has too few buffers")
	}
	at, n := b.buffers[0][0], b.buffers[0][1]
	b.buffers = b.buffers[1:]
	if at < 0 || n < 0 || at > int64(len(b.body)) || n > int64(len(b.body))-at {
		return nil, damaged("a buffer lies outside of its batch")
	}
	raw := b.body[at : at+n]
	if b.codec < 0 || len(raw) == 0 {
		return raw, nil
	}
	if len(raw) < 8 {
		return nil, damaged("a buffer is too short")
	}
	size := int64(binary.LittleEndian.Uint64(raw))
	if raw = raw[8:]; size == -1 {
		return raw, nil
	}
	if b.held += int(min(max(size, 0), maxHeld)); size < 0 || size > maxHeld || b.held > maxHeld {
		return nil, damaged("a batch unpacks to more than %d bytes", maxHeld)
	}
	z, err := zstd.NewReader(bytes.NewReader(raw), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxPage))
	if err != nil {
		return nil, damaged("%w", err)
	}
	defer z.Close()
	out, err := readSome(z, size)
	if err != nil {
		return nil, damaged("a buffer unpacks to less than it says: %w", err)
	}
	return out, nil
}

// array takes a field's part.
func (a *arrowReader) array(b *batch, f *field) (*array, error) {
	if len(b.nodes) == 0 {
		return nil, damaged("a batch has too few columns")
	}
	x := &array{field: f}
	n := b.nodes[0][0]
	b.nodes = b.nodes[1:]
	if n < 0 || n > 1<<31 {
		return nil, damaged("column %s has %d values", f.name, n)
	}
	x.length = int(n)
	if f.dictionary >= 0 {
		x.words = a.dictionaries[f.dictionary]
		if x.words == nil {
			return nil, damaged("column %s has no dictionary", f.name)
		}
		x.field = f.index
		f = f.index
	}
	if f.kind == arrowNull {
		return x, nil
	}
	valid, err := b.buffer()
	if err != nil {
		return nil, err
	}
	if len(valid) > 0 {
		if x.valid = valid; len(valid) < (x.length+7)/8 {
			return nil, damaged("column %s has too few bits", f.name)
		}
	}
	need := func(size int) error {
		if x.data, err = b.buffer(); err == nil && len(x.data) < size {
			err = damaged("column %s has %d bytes, it needs %d", f.name, len(x.data), size)
		}
		return err
	}
	wide := 4
	if f.kind == arrowLargeBytes || f.kind == arrowLargeText || f.kind == arrowLargeList {
		wide = 8
	}
	switch f.kind {
	case arrowInt, arrowFloat:
		return x, need(x.length * f.bits / 8)
	case arrowBool:
		return x, need((x.length + 7) / 8)
	case arrowText, arrowBytes, arrowLargeText, arrowLargeBytes, arrowList, arrowLargeList, arrowMap:
		if x.length > 0 {
			err = need((x.length + 1) * wide)
		} else {
			err = need(0)
		}
		if x.offsets, x.data = x.data, nil; err != nil {
			return nil, err
		}
		if f.kind == arrowList || f.kind == arrowLargeList || f.kind == arrowMap {
			break
		}
		return x, need(0)
	case arrowTextView, arrowBytesView:
		if err := need(16 * x.length); err != nil {
			return nil, err
		}
		if len(b.views) == 0 || b.views[0] < 0 || b.views[0] > int64(len(b.buffers)) {
			return nil, damaged("column %s does not say how many buffers it has", f.name)
		}
		for range b.views[0] {
			more, err := b.buffer()
			if err != nil {
				return nil, err
			}
			x.extra = append(x.extra, more)
		}
		b.views = b.views[1:]
		return x, nil
	case arrowFixedList, arrowStruct:
	default: // dates, decimals and others are null, of one buffer each
		x.valid = make([]byte, (x.length+7)/8)
		return x, need(0)
	}
	for _, c := range f.children {
		child, err := a.array(b, c)
		if err != nil {
			return nil, err
		}
		x.children = append(x.children, child)
	}
	return x, nil
}

//go:build !js

package columnar

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Encodings of values.
const (
	encodedPlain       = 0
	encodedPlainPlaces = 2
	encodedPlaces      = 8
	encodedRuns        = 3
	encodedDelta       = 5
	encodedLengths     = 6
	encodedPrefixes    = 7
)

var encodingNames = map[int]string{1: "GROUP_VAR_INT", 4: "BIT_PACKED", 9: "BYTE_STREAM_SPLIT"}

// pageHeader precedes each page.
type pageHeader struct {
	kind, unpacked, packed   int
	values, encoding         int
	repetitions, definitions int // bytes, in the second version
	plain                    bool
}

// maxHeader bounds a page's header, which may hold its least and greatest value.
const maxHeader = 1 << 20

// parsePage reads a header and says how long it is.
func parsePage(b []byte) (h pageHeader, n int, err error) {
	t := &thrift{b: b}
	inner := func(values, encoding int64) func(id int64, kind byte) {
		return func(id int64, kind byte) {
			switch {
			case id == values:
				t.number(kind, &h.values)
			case id == encoding:
				t.number(kind, &h.encoding)
			case encoding == 4 && id == 5:
				t.number(kind, &h.definitions)
			case encoding == 4 && id == 6:
				t.number(kind, &h.repetitions)
			case encoding == 4 && id == 7 && kind == thriftFalse:
				h.plain = true
			default:
				t.skip(kind)
			}
		}
	}
	t.fields(func(id int64, kind byte) {
		switch {
		case id == 1:
			t.number(kind, &h.kind)
		case id == 2:
			t.number(kind, &h.unpacked)
		case id == 3:
			t.number(kind, &h.packed)
		case (id == 5 || id == 7) && kind == thriftStruct:
			t.fields(inner(1, 2))
		case id == 8 && kind == thriftStruct:
			t.fields(inner(1, 4))
		default:
			t.skip(kind)
		}
	})
	rest := len(t.b)
	switch {
	case t.err != nil:
		return h, 0, t.err
	case h.unpacked < 0 || h.packed < 0 || h.values < 0 || h.repetitions < 0 || h.definitions < 0:
		return h, 0, damaged("a page's header has negative lengths")
	case h.unpacked > maxPage || h.packed > maxPage:
		return h, 0, damaged("a page has %d bytes, the limit is %d", max(h.unpacked, h.packed), maxPage)
	}
	return h, len(b) - rest, nil
}

// Kinds of pages.
const (
	pageData       = 0
	pageDictionary = 2
	pageDataTwo    = 3
)

// readPage reads the page that begins at an offset, and returns what it holds, packed, and where the next begins.
func readPage(r io.ReaderAt, at, end int64) (h pageHeader, body []byte, next int64, err error) {
	for size := int64(512); ; size *= 16 {
		window := make([]byte, min(size, end-at, maxHeader))
		if _, err := r.ReadAt(window, at); err != nil {
			return h, nil, 0, damaged("%w", err)
		}
		n := 0
		if h, n, err = parsePage(window); errors.Is(err, io.ErrUnexpectedEOF) && int64(len(window)) == size {
			continue
		} else if err != nil {
			return h, nil, 0, damaged("a page's header: %w", err)
		}
		at += int64(n)
		break
	}
	if int64(h.packed) > end-at {
		return h, nil, 0, damaged("a page is longer than its column")
	}
	body = make([]byte, h.packed)
	if _, err := r.ReadAt(body, at); err != nil {
		return h, nil, 0, damaged("%w", err)
	}
	return h, body, at + int64(h.packed), nil
}

var codecNames = map[int]string{3: "LZO", 4: "BROTLI", 5: "LZ4", 7: "LZ4_RAW"}

// unpack decompresses to exactly size bytes.
func unpack(codec int, body []byte, size int) ([]byte, error) {
	var r io.Reader
	switch codec {
	case 0:
		if len(body) != size {
			return nil, damaged("a page has %d bytes, its header says %d", len(body), size)
		}
		return body, nil
	case 1:
		if n, err := snappy.DecodedLen(body); err != nil || n != size {
			return nil, damaged("a page unpacks to %d bytes, its header says %d", n, size)
		}
		out, err := snappy.Decode(nil, body)
		if err != nil {
			return nil, damaged("%w", err)
		}
		return out, nil
	case 2:
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, damaged("%w", err)
		}
		r = z
	case 6:
		z, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxPage))
		if err != nil {
			return nil, damaged("%w", err)
		}
		defer z.Close()
		r = z
	default:
		name := codecNames[codec]
		if name == "" {
			name = fmt.Sprint("codec ", codec)
		}
		return nil, damaged("it is compressed by %s, which is not read: write it with snappy, gzip, zstd or none", name)
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, damaged("a page unpacks to less than its header says: %w", err)
	}
	if n, _ := r.Read(make([]byte, 1)); n > 0 {
		return nil, damaged("a page unpacks to more than its header says")
	}
	return out, nil
}

// levels begins to read those that a page of the first version has, of which the length precedes them.
func levels(b []byte, most int) (h hybrid, rest []byte, err error) {
	if most == 0 {
		return hybrid{}, b, nil
	}
	if len(b) < 4 {
		return h, nil, damaged("a page ends early")
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return h, nil, damaged("a page ends early")
	}
	return hybrid{b: b[4 : 4+n], width: widthOf(most)}, b[4+n:], nil
}

//go:build !js

package columnar

import (
	"encoding/binary"
	"fmt"
	"io"
)

// column is read value by value, with how deep each is there (definition) and which list goes on with it (repetition).
type column struct {
	kind, length   int
	text, unsigned bool
	names          names
	path           string
	maxDef, maxRep int
	skipped        bool // it is null always, and not read
	opaque         bool // it is null wherever it is

	r        io.ReaderAt
	held     *int // bytes of all columns' pages
	codec    int
	at, end  int64
	left     int // entries of the page
	reps     hybrid
	defs     hybrid
	vals     values
	dict     [][]byte
	page     int // bytes that this page and the dictionary hold
	words    int
	rep, def int
	ready    bool
}

// begin goes to the column's part of a group of rows.
func (c *column) begin(part chunk, size int64) error {
	c.hold(&c.page, 0)
	c.hold(&c.words, 0)
	c.left, c.vals, c.dict, c.ready = 0, nil, nil, false
	c.codec, c.at = part.codec, part.data
	if part.dictionary > 0 && part.dictionary < part.data {
		c.at = part.dictionary
	}
	switch {
	case part.encrypted:
		return c.wrong(damaged("it is encrypted"))
	case part.elsewhere:
		return c.wrong(damaged("it is in another file"))
	case part.kind != c.kind:
		return c.wrong(damaged("its kind is not the schema's"))
	case c.at < 4 || part.size < 0 || c.at > size || part.size > size-c.at:
		return c.wrong(damaged("it lies outside of the file"))
	}
	c.end = c.at + part.size
	return nil
}

func (c *column) wrong(err error) error { return fmt.Errorf("column %q: %w", c.path, err) }

// hold accounts for so many bytes in place of those that *of says.
func (c *column) hold(of *int, n int) bool {
	*c.held += n - *of
	*of = n
	return *c.held <= maxHeld
}

// peek makes rep and def those of the next entry; ok is false where the group of rows ends.
func (c *column) peek() (ok bool, err error) {
	if c.ready {
		return true, nil
	}
	for c.left == 0 {
		if c.at >= c.end {
			return false, nil
		}
		if err := c.load(); err != nil {
			return false, c.wrong(err)
		}
	}
	rep, ok1 := c.reps.next()
	def, ok2 := c.defs.next()
	if !ok1 || !ok2 || rep > uint64(c.maxRep) || def > uint64(c.maxDef) {
		return false, c.wrong(damaged("a page's levels are damaged"))
	}
	c.left--
	c.rep, c.def, c.ready = int(rep), int(def), true
	return true, nil
}

// load goes to the next page.
func (c *column) load() error {
	h, body, next, err := readPage(c.r, c.at, c.end)
	if err != nil {
		return err
	}
	c.at = next
	switch h.kind {
	case pageDictionary:
		return c.dictionary(h, body)
	case pageData, pageDataTwo:
	default:
		return nil
	}
	if !c.hold(&c.page, h.unpacked+h.packed) {
		return damaged("its pages are too large to be held with those of the other columns")
	}
	if h.kind == pageData {
		if body, err = unpack(c.codec, body, h.unpacked); err != nil {
			return err
		}
		if c.reps, body, err = levels(body, c.maxRep); err != nil {
			return err
		}
		if c.defs, body, err = levels(body, c.maxDef); err != nil {
			return err
		}
	} else {
		n := h.repetitions + h.definitions
		if n > len(body) || n > h.unpacked {
			return damaged("a page ends early")
		}
		c.reps = hybrid{b: body[:h.repetitions], width: widthOf(c.maxRep)}
		c.defs = hybrid{b: body[h.repetitions:n], width: widthOf(c.maxDef)}
		codec := c.codec
		if h.plain {
			codec = 0
		}
		if body, err = unpack(codec, body[n:], h.unpacked-n); err != nil {
			return err
		}
	}
	c.left = h.values
	c.vals, err = c.decode(h.encoding, body, h.values)
	return err
}

// size is how many bytes plain values have, see plain.
func (c *column) size() int {
	switch c.kind {
	case kindBool:
		return -1
	case kindInt32, kindFloat:
		return 4
	case kindInt64, kindDouble:
		return 8
	case kindInt96:
		return 12
	case kindFixed:
		return c.length
	}
	return 0
}

func (c *column) dictionary(h pageHeader, body []byte) error {
	if c.dict != nil || c.kind == kindBool {
		return damaged("it has a dictionary too many")
	}
	if !c.hold(&c.words, h.unpacked+24*min(h.values, h.unpacked)) {
		return damaged("its dictionary is too large to be held with the other columns")
	}
	body, err := unpack(c.codec, body, h.unpacked)
	if err != nil {
		return err
	}
	p := &plain{b: body, size: c.size()}
	c.dict = make([][]byte, 0, min(h.values, h.unpacked))
	for range h.values {
		raw, ok := p.next()
		if !ok {
			return damaged("its dictionary ends early")
		}
		c.dict = append(c.dict, raw)
	}
	return nil
}

func (c *column) decode(encoding int, body []byte, most int) (values, error) {
	switch number := c.kind == kindInt32 || c.kind == kindInt64; {
	case encoding == encodedPlain:
		return &plain{b: body, size: c.size()}, nil
	case encoding == encodedPlainPlaces || encoding == encodedPlaces:
		if len(body) == 0 {
			return &plain{size: 8}, nil // a page of nulls
		}
		if body[0] > 32 {
			return nil, damaged("places in a dictionary have %d bits", body[0])
		}
		return &places{hybrid{b: body[1:], width: int(body[0])}, c.dict}, nil
	case encoding == encodedRuns && c.kind == kindBool:
		if len(body) < 4 {
			return nil, damaged("a page ends early")
		}
		n := min(uint64(binary.LittleEndian.Uint32(body)), uint64(len(body)-4))
		return &runs{hybrid{b: body[4 : 4+n], width: 1}}, nil
	case encoding == encodedDelta && number:
		if d, ok := newDelta(body); ok {
			return &deltas{from: d}, nil
		}
		return nil, damaged("its differences are damaged")
	case (encoding == encodedLengths || encoding == encodedPrefixes) && c.kind == kindBytes:
		return c.lengths(encoding, body, most)
	}
	name := encodingNames[encoding]
	if name == "" {
		name = fmt.Sprint("number ", encoding)
	}
	return nil, damaged("its encoding %s is not read: write it with the defaults of pyarrow or pandas", name)
}

func (c *column) lengths(encoding int, body []byte, most int) (values, error) {
	l := &lengths{}
	ok := true
	if !c.hold(&c.page, c.page+8*min(most, maxPage)) {
		return nil, damaged("its pages are too large to be held with those of the other columns")
	}
	if encoding == encodedPrefixes {
		if l.prefix, body, ok = lengthsOf(body, most); !ok {
			return nil, damaged("its lengths are damaged")
		}
	}
	if l.each, l.b, ok = lengthsOf(body, most); !ok {
		return nil, damaged("its lengths are damaged")
	}
	return l, nil
}

// take appends the value of the entry that was peeked at.
func (c *column) take(dst []byte) ([]byte, error) {
	c.ready = false
	raw, ok := c.vals.next()
	if !ok || c.kind == kindFixed && len(raw) != c.length {
		return dst, c.wrong(damaged("a page has fewer values than its header says"))
	}
	dst, err := c.appendJSON(dst, raw)
	if err != nil {
		err = c.wrong(err)
	}
	return dst, err
}

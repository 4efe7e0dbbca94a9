package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
)

// layOut decides how the file is written canonically: wider dtypes first, then by name
// (the reference implementation's order), metadata keys sorted, the header padded
// with spaces to a multiple of 8. The same content gives the same bytes. head is the
// file up to the first tensor's values.
func (s *SafeTensors) layOut() (head []byte, ts []RawTensor, size int64, err error) {
	refuse := func(err error) ([]byte, []RawTensor, int64, error) { return nil, nil, 0, err }
	ts = slices.Clone(s.Tensors)
	slices.SortStableFunc(ts, func(a, b RawTensor) int {
		if d := dtypeBits[b.DType] - dtypeBits[a.DType]; d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	var h bytes.Buffer
	h.WriteByte('{')
	put := func(key string, v any) error {
		if h.Len() > 1 {
			h.WriteByte(',')
		}
		for _, x := range []any{key, v} {
			b, err := json.Marshal(x)
			if err != nil {
				return err
			}
			h.Write(b)
			h.WriteByte(':')
		}
		h.Truncate(h.Len() - 1)
		return nil
	}
	if len(s.Metadata) > 0 {
		if err := put("__metadata__", maps.Clone(s.Metadata)); err != nil { // Marshal sorts the keys
			return refuse(err)
		}
	}
	at := int64(0)
	for i, t := range ts {
		e := headerEntry{t.DType, t.Shape, [2]int64{at, at + t.size()}}
		if e.Shape == nil {
			e.Shape = []int{}
		}
		want, err := byteSize(e)
		if err != nil {
			return refuse(fmt.Errorf("%w: tensor %q: %w", ErrSafetensors, t.Name, err))
		}
		if want != t.size() || t.Name == "__metadata__" || i > 0 && ts[i-1].Name == t.Name {
			return refuse(fmt.Errorf("%w: tensor %q: %d bytes for %s%v, or its name is taken", ErrSafetensors, t.Name, t.size(), t.DType, t.Shape))
		}
		if err := put(t.Name, e); err != nil {
			return refuse(err)
		}
		at = e.Offsets[1]
	}
	h.WriteByte('}')
	for h.Len()%8 != 0 {
		h.WriteByte(' ')
	}
	if h.Len() > maxHeader {
		return refuse(fmt.Errorf("%w: header of %d bytes, limit %d", ErrSafetensors, h.Len(), maxHeader))
	}
	head = binary.LittleEndian.AppendUint64(nil, uint64(h.Len()))
	head = append(head, h.Bytes()...)
	return head, ts, int64(len(head)) + at, nil
}

// Encode writes the file canonically: the same content gives the same bytes.
func (s *SafeTensors) Encode() ([]byte, error) {
	head, ts, size, err := s.layOut()
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, size), head...)
	for _, t := range ts {
		data, err := t.bytes()
		if err != nil {
			return nil, err
		}
		out = append(out, data...)
	}
	return out, nil
}

// Blob is a safetensors file in its canonical form that is not in memory: its header
// is, and its tensors stay where they are. It may be read from any goroutine.
type Blob struct {
	head []byte
	ts   []RawTensor
	at   []int64 // where each tensor begins
	size int64
}

// open is Encode for what is too large to hold.
func (s *SafeTensors) open() (*Blob, error) {
	head, ts, size, err := s.layOut()
	if err != nil {
		return nil, err
	}
	b := &Blob{head: head, ts: ts, size: size}
	at := int64(len(head))
	for _, t := range ts {
		b.at = append(b.at, at)
		at += t.size()
	}
	return b, nil
}

// Size is the file's length in bytes.
func (b *Blob) Size() int64 { return b.size }

// ReadAt is io.ReaderAt's.
func (b *Blob) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("model: read at %d", off)
	}
	for len(p) > 0 && off < b.size {
		var got int
		if head := int64(len(b.head)); off < head {
			got = copy(p, b.head[off:])
		} else {
			i := sort.Search(len(b.at), func(i int) bool { return b.at[i] > off }) - 1
			t := b.ts[i]
			want := min(int64(len(p)), b.at[i]+t.size()-off)
			if err := t.readAt(p[:want], off-b.at[i]); err != nil {
				return n, err
			}
			got = int(want)
		}
		p, off, n = p[got:], off+int64(got), n+got
	}
	if len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// WriteTo writes the whole of it.
func (b *Blob) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{io.NewSectionReader(b, 0, b.size)})
}

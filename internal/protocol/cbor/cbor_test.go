package cbor

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	general "github.com/fxamacker/cbor/v2"
)

// RFC 8949 appendix A, as far as it is of the three types.
func TestAppendixA(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		want string
	}{
		{0, "00"}, {1, "01"}, {10, "0a"}, {23, "17"}, {24, "1818"}, {25, "1819"}, {100, "1864"}, {1000, "1903e8"},
		{1000000, "1a000f4240"}, {1000000000000, "1b000000e8d4a51000"}, {math.MaxUint64, "1bffffffffffffffff"},
	} {
		got := AppendUint(nil, c.n)
		if hex.EncodeToString(got) != c.want {
			t.Errorf("%d is written as %x, want %s", c.n, got, c.want)
		}
		r := NewReader(got)
		if n := r.Uint(math.MaxUint64, "n"); n != c.n || r.Done() != nil {
			t.Errorf("%s is read as %d, %v", c.want, n, r.Done())
		}
	}
	for _, c := range [][]byte{nil, {1, 2, 3, 4}} {
		got := AppendBytes([]byte("before"), c)
		if want := map[int]string{0: "40", 4: "4401020304"}[len(c)]; hex.EncodeToString(got[6:]) != want {
			t.Errorf("%x is written as %x, want %s", c, got[6:], want)
		}
	}
	nested := AppendUint(AppendArray(nil, 3), 1) // [1, [2, 3], [4, 5]]
	nested = AppendUint(AppendUint(AppendArray(nested, 2), 2), 3)
	nested = AppendUint(AppendUint(AppendArray(nested, 2), 4), 5)
	if hex.EncodeToString(nested) != "8301820203820405" {
		t.Errorf("nested arrays are written as %x", nested)
	}
	if got := AppendArray(nil, 25); hex.EncodeToString(got) != "9819" {
		t.Errorf("the head of an array of 25 is written as %x", got)
	}
}

// What is not as it must be is said, and nothing is read from then on.
func TestReaderSays(t *testing.T) {
	for _, c := range []struct {
		name, data string
		read       func(r *Reader)
		says       string
	}{
		{"nothing there", "", func(r *Reader) { r.Uint(1, "x") }, "x: truncated"},
		{"half a head", "1903", func(r *Reader) { r.Uint(1, "x") }, "x: truncated"},
		{"half a string", "43ffff", func(r *Reader) { r.Bytes(0, 9, "x") }, "x: truncated"},
		{"another type", "40", func(r *Reader) { r.Uint(1, "x") }, "x: major type 2, want 0"},
		{"a negative integer", "20", func(r *Reader) { r.Uint(1, "x") }, "x: major type 1, want 0"},
		{"null", "f6", func(r *Reader) { r.Bytes(0, 9, "x") }, "x: major type 7, want 2"},
		{"a string without a length", "5f4101ff", func(r *Reader) { r.Bytes(0, 9, "x") }, "x: length form 31 not allowed"},
		{"an array without a length", "9fff", func(r *Reader) { r.Array(0, 9, "x") }, "x: length form 31 not allowed"},
		{"a reserved form", "1c", func(r *Reader) { r.Uint(1, "x") }, "x: length form 28 not allowed"},
		{"23 in two bytes", "1817", func(r *Reader) { r.Uint(99, "x") }, "x: 23 not in shortest form"},
		{"255 in three", "1900ff", func(r *Reader) { r.Uint(999, "x") }, "x: 255 not in shortest form"},
		{"65535 in five", "1a0000ffff", func(r *Reader) { r.Uint(1<<20, "x") }, "x: 65535 not in shortest form"},
		{"2^32-1 in nine", "1b00000000ffffffff", func(r *Reader) { r.Uint(1<<40, "x") }, "x: 4294967295 not in shortest form"},
		{"too large", "0b", func(r *Reader) { r.Uint(10, "x") }, "x: 11 above 10"},
		{"another value", "03", func(r *Reader) { r.Literal(2, "x") }, "x 3, want 2"},
		{"too few elements", "81", func(r *Reader) { r.Array(2, 4, "x") }, "x: 1 elements, want 2..4"},
		{"too many elements", "9bffffffffffffffff", func(r *Reader) { r.Array(2, 4, "x") }, "x: 18446744073709551615 elements, want 2..4"},
		{"too long a string", "5bffffffffffffffff", func(r *Reader) { r.Bytes(0, 9, "x") }, "x: 18446744073709551615 bytes, want 0..9"},
		{"a longer string than there is", "5b7fffffffffffffff", func(r *Reader) { r.Bytes(0, math.MaxInt, "x") }, "x: truncated"},
		{"another length", "420102", func(r *Reader) { r.Fixed(make([]byte, 3), "x") }, "x: 2 bytes, want 3..3"},
		{"more behind it", "0102", func(r *Reader) { r.Uint(9, "x") }, "1 bytes after the message"},
		{"the first of two", "0b40", func(r *Reader) { r.Uint(10, "x"); r.Uint(10, "y") }, "x: 11 above 10"},
	} {
		data, err := hex.DecodeString(c.data)
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(data)
		c.read(&r)
		var of *Error
		if err := r.Done(); err == nil || err.Error() != c.says || !errors.As(err, &of) || r.OK() {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
		if n, b, a := r.Uint(math.MaxUint64, "next"), r.Bytes(0, 9, "next"), r.Array(0, 9, "next"); n != 0 || b != nil || a != 0 {
			t.Errorf("%s: %d, %x and %d are read after the error", c.name, n, b, a)
		}
	}
}

// A byte string is not to be appended to: what follows it is the next item.
func TestBytesEndWhereTheyEnd(t *testing.T) {
	data := AppendUint(AppendBytes(nil, []byte("string")), 7)
	r := NewReader(data)
	v := append(r.Bytes(0, 9, "string"), "more"...)
	if n := r.Uint(9, "next"); string(v) != "stringmore" || n != 7 || r.Done() != nil {
		t.Errorf("%q, then %d, %v", v, n, r.Done())
	}
}

// Neither what is well formed nor what is not costs memory until an error is asked for.
func TestReaderAllocatesNothing(t *testing.T) {
	data := AppendBytes(AppendUint(AppendArray(nil, 2), 1<<40), make([]byte, 300))
	for _, most := range []uint64{1 << 40, 1} {
		if n := testing.AllocsPerRun(100, func() {
			r := NewReader(data)
			r.Array(2, 2, "message")
			r.Uint(most, "number")
			r.Bytes(0, 300, "bytes")
			if r.OK() != (most > 1) {
				t.Error("the wrong one is taken")
			}
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// read consumes one item of any of the three types, and appends what it read to again.
func read(r *Reader, again []byte, depth int) []byte {
	switch {
	case len(r.b) > 0 && r.b[0]&0xe0 == majorBytes:
		return AppendBytes(again, r.Bytes(0, math.MaxInt, "bytes"))
	case len(r.b) > 0 && r.b[0]&0xe0 == majorArray && depth > 0:
		n := r.Array(0, 1<<16, "array")
		again = AppendArray(again, n)
		for i := 0; i < n && r.OK(); i++ {
			again = read(r, again, depth-1)
		}
		return again
	}
	return AppendUint(again, r.Uint(math.MaxUint64, "integer"))
}

// ours reports whether what the library read is of the three types.
func ours(v any, depth int) bool {
	switch v := v.(type) {
	case uint64, []byte:
		return true
	case []any:
		for _, x := range v {
			if !ours(x, depth-1) {
				return false
			}
		}
		return depth > 0 && len(v) <= 1<<16
	}
	return false
}

// FuzzReader: what is accepted is written as the same bytes, and it is what the library
// reads, and writes in core deterministic encoding as the same bytes.
func FuzzReader(f *testing.F) {
	const depth = 4
	mode, err := general.CoreDetEncOptions().EncMode()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "17", "1818", "1817", "8301820203820405", "4401020304", "5f4101ff", "9bffffffffffffffff", "f6", "20"} {
		b, err := hex.DecodeString(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		r := NewReader(data)
		again := read(&r, nil, depth)
		err := r.Done()
		if !bytes.Equal(before, data) {
			t.Fatal("the input was changed")
		}
		if err == nil && !bytes.Equal(again, data) {
			t.Fatalf("%x comes back as %x", data, again)
		}
		var v any
		taken := general.Unmarshal(data, &v) == nil && ours(v, depth)
		if taken {
			b, err := mode.Marshal(v)
			taken = err == nil && bytes.Equal(b, data)
		}
		if taken != (err == nil) {
			t.Fatalf("%x: %v, the library %v (%v)", data, err, taken, v)
		}
	})
}

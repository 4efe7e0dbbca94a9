package attack

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
)

// A Raw is in an item as its bytes are, which need not be an item's.
type Raw []byte

// Mutants are an item's encodings with one thing of it changed: each of its fields in
// turn, wherever it stands, also in byte strings that hold an item themselves, to what
// is extreme of its type and to things of other types; left out, twice, exchanged with
// the next; and one more behind the last. The names say what was changed, and are the
// same for items of one form. A field that is new is changed by itself.
func Mutants(item any) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		mutate(item, "", func(name string, v any) bool { return yield(name, Encode(v)) })
	}
}

// mutate yields what an item may become; false: enough.
func mutate(v any, at string, yield func(name string, v any) bool) bool {
	for name, x := range extremes(v) {
		if !yield(at+" "+name, x) {
			return false
		}
	}
	switch v := v.(type) {
	case Array:
		return mutateArray(v, at, yield)
	case []byte:
		inner, err := Decode(v)
		if a, ok := inner.(Array); err == nil && ok && len(a) > 1 && bytes.Equal(Encode(a), v) {
			return mutate(a, at+"<>", func(name string, x any) bool { return yield(name, Encode(x)) })
		}
	}
	return true
}

func mutateArray(a Array, at string, yield func(name string, v any) bool) bool {
	for i := range a {
		changed := func(name string, x any) bool {
			b := slices.Clone(a)
			b[i] = x
			return yield(name, b)
		}
		if !mutate(a[i], fmt.Sprintf("%s[%d]", at, i), changed) {
			return false
		}
		others := map[string]Array{
			"left out": slices.Concat(a[:i], a[i+1:]),
			"twice":    slices.Concat(a[:i+1], a[i:]),
		}
		if i+1 < len(a) {
			others["exchanged"] = slices.Concat(a[:i], Array{a[i+1], a[i]}, a[i+2:])
		}
		for _, name := range []string{"left out", "twice", "exchanged"} {
			if b, ok := others[name]; ok && !yield(fmt.Sprintf("%s[%d] %s", at, i, name), b) {
				return false
			}
		}
	}
	return true
}

// extremes are what may be in an item's place.
func extremes(v any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, x := range append(ownExtremes(v), anyExtremes...) {
			if !yield(x.name, x.v) {
				return
			}
		}
	}
}

type extreme struct {
	name string
	v    any
}

// anyExtremes are of every type, and of none.
var anyExtremes = []extreme{
	{"nil", nil}, {"0", 0}, {"2^64-1", uint64(math.MaxUint64)}, {"-1", Raw{0x20}}, {"-2^64", Raw{0x3b, 255, 255, 255, 255, 255, 255, 255, 255}},
	{"true", true}, {"no text", ""}, {"no bytes", []byte{}}, {"no array", Array{}}, {"0.0", 0.0}, {"NaN", Raw{0xf9, 0x7e, 0}}, {"Inf", Raw{0xf9, 0x7c, 0}},
	{"-Inf", Raw{0xf9, 0xfc, 0}}, {"a map", Raw{0xa1, 0, 0}}, {"a tag", Raw{0xc1, 0}}, {"undefined", Raw{0xf7}}, {"a break", Raw{0xff}},
	{"an array without end", Raw{0x9f}}, {"bytes without end", Raw{0x5f, 0x41, 0, 0xff}}, {"four gigabytes", Raw{0x5a, 255, 255, 255, 255}},
	{"2^64 bytes", Raw{0x5b, 255, 255, 255, 255, 255, 255, 255, 255}}, {"2^64 items", Raw{0x9b, 255, 255, 255, 255, 255, 255, 255, 255}},
	{"arrays in arrays", Raw(bytes.Repeat([]byte{0x81}, 3000))}, {"nothing", Raw{}},
}

// ownExtremes are of the item's own type.
func ownExtremes(v any) (all []extreme) {
	add := func(name string, v any) { all = append(all, extreme{name, v}) }
	switch v := v.(type) {
	case int:
		return ownExtremes(uint64(v))
	case uint64:
		add("one less", v-1)
		add("one more", v+1)
		add("twice as much", 2*v)
		for _, bits := range []int{0, 1, 7, 8, 15, 16, 20, 24, 30, 31, 32, 40, 53, 62, 63} {
			add(fmt.Sprintf("2^%d", bits), uint64(1)<<bits)
			add(fmt.Sprintf("2^%d-1", bits), uint64(1)<<bits-1)
		}
		add("not the shortest form", Raw(append([]byte{0x1b}, bigEndian(v)...)))
	case float64:
		for _, x := range []float64{-v, v / 2, 2 * v, v * 1e6, 5e-324, 1e-320, 1e-30, 1e30, math.MaxFloat64, -math.MaxFloat64, 1, 1 + 0x1p-52, math.Copysign(0, -1)} {
			add(fmt.Sprint(x), x)
		}
		add("not the shortest form", Raw(append([]byte{0xfb}, bigEndian(math.Float64bits(v))...)))
	case bool:
		add("the other", !v)
	case string:
		add("a letter more", v+"x")
		add("600 bytes", strings.Repeat("x", 600))
		add("70,000 bytes", strings.Repeat("x", 70_000))
		add("codes", v+"\x1b]0;x\a\x1b[2J\u202e\r\n\x00")
		add("not UTF-8", v+"\xff\xfe")
	case []byte:
		if len(v) > 0 {
			add("a byte less", v[:len(v)-1])
			first, last := bytes.Clone(v), bytes.Clone(v)
			first[0] ^= 1
			last[len(v)-1] ^= 0x80
			add("another first byte", first)
			add("another last byte", last)
			add("zeros", make([]byte, len(v)))
			add("ones", bytes.Repeat([]byte{0xff}, len(v)))
		}
		add("a byte more", append(bytes.Clone(v), 0))
		add("5,000 bytes", make([]byte, 5000))
		add("300,000 bytes", make([]byte, 300_000))
	case Array:
		if len(v) > 0 {
			add("a thousand of the first", slices.Repeat(v[:1], 1000))
			add("20,000 of the last", slices.Repeat(Array{0}, 20_000))
			add("backwards", backwards(v))
		}
		add("one more", append(slices.Clone(v), 0))
		add("one more text", append(slices.Clone(v), "x"))
		add("one array more", append(slices.Clone(v), Array{}))
	}
	return all
}

func backwards(a Array) Array {
	a = slices.Clone(a)
	slices.Reverse(a)
	return a
}

func bigEndian(v uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(v >> (56 - 8*i))
	}
	return b
}

package quant

import (
	"fmt"
	"math"
	"strings"

	"github.com/starling-fl/starling/quant/nf4"
)

// blockLen is the number of values that share one scale.
const blockLen = nf4.Block

// Format is a way to store a vector in the clear. Formats are values; LookupFormat finds one by
// name.
type Format struct {
	spec *formatSpec
}

// formatSpec describes a format. One file defines each.
type formatSpec struct {
	id   byte // in the header of a compressed vector; never reused
	name string
	size func(n int) int // bytes for n values
	// encode fills dst, size(len(x)) bytes; it refuses what is not finite.
	encode func(dst []byte, x []float32) error
	// decode fills dst from src, size(len(dst)) bytes.
	decode func(dst []float32, src []byte) error
}

// formats is in order of falling size.
var formats = []*formatSpec{&formatF32, &formatF16, &formatBF16, &formatInt8, &formatInt4, &formatNF4, &formatNF4DQ}

// LookupFormat returns the format of that name: f32, f16, bf16, int8, int4,
// nf4 or nf4dq. The error wraps ErrUnknown.
func LookupFormat(name string) (Format, error) {
	for _, f := range formats {
		if f.name == name {
			return Format{f}, nil
		}
	}
	return Format{}, fmt.Errorf("%w: format %q (have %s)", ErrUnknown, name, strings.Join(FormatNames(), ", "))
}

// FormatNames lists the formats, largest first.
func FormatNames() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// Name returns the name by which LookupFormat finds the format.
func (f Format) Name() string { return f.spec.name }

// Size returns the bytes that n values take, without header and codec.
func (f Format) Size(n int) int { return f.spec.size(n) }

// Append appends the packed values of x, f.Size(len(x)) bytes, to dst. The
// error wraps ErrNotFinite or ErrRange.
func (f Format) Append(dst []byte, x []float32) ([]byte, error) {
	n, size := len(dst), f.Size(len(x))
	dst = grow(dst, size)
	if err := f.spec.encode(dst[n:], x); err != nil {
		return dst[:n], err
	}
	return dst, nil
}

// Decode fills dst with the values packed in src, which must be exactly
// f.Size(len(dst)) bytes, else the error wraps ErrCorrupt.
func (f Format) Decode(dst []float32, src []byte) error {
	if len(src) != f.Size(len(dst)) {
		return fmt.Errorf("%w: %d bytes of %s for %d values, need %d", ErrCorrupt, len(src), f.Name(), len(dst), f.Size(len(dst)))
	}
	return f.spec.decode(dst, src)
}

// grow extends b by n bytes of any content.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b[:len(b)+n]
	}
	out := make([]byte, len(b)+n, max(len(b)+n, 2*cap(b)))
	copy(out, b)
	return out
}

// checkFinite returns an error that wraps ErrNotFinite at the first NaN or
// infinity.
func checkFinite(x []float32) error {
	if topBits(x) < 0x7f800000 {
		return nil
	}
	for i, v := range x {
		if v-v != 0 {
			return fmt.Errorf("%w: value %d is %g", ErrNotFinite, i, v)
		}
	}
	return nil
}

// absMax returns the largest magnitude in x. Magnitudes are compared as
// integers, in which order infinity and then NaN come last.
func absMax(x []float32) float32 { return math.Float32frombits(topBits(x)) }

func topBits(x []float32) uint32 {
	var a, b uint32
	for ; len(x) >= 2; x = x[2:] {
		a = max(a, math.Float32bits(x[0])&0x7fffffff)
		b = max(b, math.Float32bits(x[1])&0x7fffffff)
	}
	if len(x) == 1 {
		a = max(a, math.Float32bits(x[0])&0x7fffffff)
	}
	return max(a, b)
}

// blocks returns the number of blocks of n values.
func blocks(n int) int { return (n + blockLen - 1) / blockLen }

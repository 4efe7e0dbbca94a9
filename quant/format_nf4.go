package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/starling-fl/starling/quant/nf4"
)

// formatNF4 is 4-bit NormalFloat as bitsandbytes stores it: codes, two a byte,
// the first in the high half (an odd end is padded with the code of zero);
// then the largest magnitude of each 64 values as float32. 4.5 bits a value.
var formatNF4 = formatSpec{id: 6, name: "nf4",
	size: func(n int) int { return (n+1)/2 + 4*blocks(n) },
	encode: func(dst []byte, x []float32) error {
		scales := borrowScales(blocks(len(x)))
		defer scalePool.Put(scales)
		codes := (len(x) + 1) / 2
		if err := encodeNF4(dst[:codes], *scales, x); err != nil {
			return err
		}
		for b, v := range *scales {
			putScale(dst[codes:], b, v)
		}
		return nil
	},
	decode: func(dst []float32, src []byte) error {
		scales := borrowScales(blocks(len(dst)))
		defer scalePool.Put(scales)
		codes := (len(dst) + 1) / 2
		for b := range *scales {
			v, err := getScale(src[codes:], b)
			if err != nil {
				return err
			}
			(*scales)[b] = v
		}
		nf4.Decode(dst, src[:codes], *scales, blockLen)
		return checkPad(src[:codes], len(dst), nf4.Zero)
	}}

// formatNF4DQ is formatNF4 with double quantization of the scales: their mean
// as float32 is taken off, and the rest is stored as 8-bit codes of the signed
// dynamic map relative to the largest magnitude of each 256. Layout: 4-bit
// codes, 8-bit codes, float32 per 256 blocks, mean. 4.127 bits a value.
var formatNF4DQ = formatSpec{id: 7, name: "nf4dq",
	size: func(n int) int {
		if n == 0 {
			return 0
		}
		return (n+1)/2 + blocks(n) + 4*nested(n) + 4
	},
	encode: func(dst []byte, x []float32) error {
		if len(x) == 0 {
			return nil
		}
		scales := borrowScales(blocks(len(x)))
		defer scalePool.Put(scales)
		codes := (len(x) + 1) / 2
		if err := encodeNF4(dst[:codes], *scales, x); err != nil {
			return err
		}
		encodeScales(dst[codes:], *scales)
		return nil
	},
	decode: func(dst []float32, src []byte) error {
		if len(dst) == 0 {
			return nil
		}
		scales := borrowScales(blocks(len(dst)))
		defer scalePool.Put(scales)
		codes := (len(dst) + 1) / 2
		if err := decodeScales(*scales, src[codes:]); err != nil {
			return err
		}
		nf4.Decode(dst, src[:codes], *scales, blockLen)
		return checkPad(src[:codes], len(dst), nf4.Zero)
	}}

// encodeNF4 is nf4.Encode with this package's error for what is not finite.
func encodeNF4(codes []byte, scales, x []float32) error {
	if nf4.Encode(codes, scales, x, blockLen) != nil {
		return checkFinite(x) // nothing else is refused
	}
	return nil
}

// nestedLen is the number of scales that share a scale of their own.
const nestedLen = 256

func nested(n int) int { return (blocks(n) + nestedLen - 1) / nestedLen }

var scalePool = sync.Pool{New: func() any { return new([]float32) }}

func borrowScales(n int) *[]float32 {
	s := scalePool.Get().(*[]float32)
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	*s = (*s)[:n]
	return s
}

// encodeScales writes the doubly quantized scales: one byte each, the scales
// of the scales, the mean.
func encodeScales(dst []byte, scales []float32) {
	var sum float64
	for _, v := range scales {
		sum += float64(v)
	}
	mean := float32(sum / float64(len(scales)))
	tail := dst[len(scales):]
	for b := 0; b*nestedLen < len(scales); b++ {
		part := scales[b*nestedLen : min((b+1)*nestedLen, len(scales))]
		var amax float32
		for _, v := range part {
			amax = max(amax, v-mean, mean-v)
		}
		putScale(tail, b, amax)
		for i, v := range part {
			dst[b*nestedLen+i] = dynamicZero
			if amax > 0 {
				scaled := float32(float64(v-mean) / float64(amax))
				if inv := 1 / amax; !math.IsInf(float64(inv), 0) {
					scaled = (v - mean) * inv
				}
				dst[b*nestedLen+i] = dynamicCode(min(max(scaled, -1), 1))
			}
		}
	}
	binary.LittleEndian.PutUint32(tail[4*nested(blockLen*len(scales)):], math.Float32bits(mean))
}

// decodeScales undoes encodeScales. Rounding can leave a scale slightly below
// zero; that is what bitsandbytes computes with, too.
func decodeScales(scales []float32, src []byte) error {
	tail := src[len(scales):]
	mean := math.Float32frombits(binary.LittleEndian.Uint32(tail[4*nested(blockLen*len(scales)):]))
	if mean-mean != 0 || math.Signbit(float64(mean)) {
		return fmt.Errorf("%w: mean scale is %g", ErrCorrupt, mean)
	}
	for b := 0; b*nestedLen < len(scales); b++ {
		amax, err := getScale(tail, b)
		if err != nil {
			return err
		}
		part := scales[b*nestedLen : min((b+1)*nestedLen, len(scales))]
		for i := range part {
			v := float32(dynamicMap[src[b*nestedLen+i]]*amax) + mean
			if v-v != 0 {
				return fmt.Errorf("%w: scale of block %d overflows", ErrCorrupt, b*nestedLen+i)
			}
			part[i] = v
		}
	}
	return nil
}

// dynamicMap is the signed 8-bit dynamic map of bitsandbytes: for each of
// seven decades, 1, 2, 4 ... 64 means of equal parts of [0.1, 1], both signs,
// and 0 and 1.
var dynamicMap = func() (m [256]float32) {
	k := 0
	for e, scale := range [7]float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1} {
		n := 1 << e
		at := func(i int) float32 { return float32(0.1 + 0.9*float64(i)/float64(n)) }
		for i := range n {
			mean := float32((float64(at(i)) + float64(at(i+1))) / 2)
			v := float32(scale * float64(mean))
			m[128+k], m[126-k] = v, -v
			k++
		}
	}
	m[255] = 1
	return m
}()

// dynamicZero is the code of 0.
const dynamicZero = 127

// dynamicStart gives, for the sign, exponent and upper seven bits of the
// mantissa of a value, the last code whose value is at or below all values
// that share them. Exponents below -21 share the first entries of each sign.
var dynamicStart = func() (start [2 * dynamicCells]uint8) {
	for i := range dynamicCells {
		lowest := math.Float32frombits(uint32(i+dynamicBase) << 16)
		if i == 0 {
			lowest = 0
		}
		code := dynamicZero
		for code < 255 && dynamicMap[code+1] <= lowest {
			code++
		}
		start[i] = uint8(code)
		// With the sign set, the largest magnitude is the lowest value.
		lowest = -math.Float32frombits(uint32(i+dynamicBase+1)<<16 - 1)
		code = 0
		for code < 255 && dynamicMap[code+1] <= lowest {
			code++
		}
		start[dynamicCells+i] = uint8(code)
	}
	return start
}()

const (
	dynamicBase  = (127 - 22) << 7 // upper 15 bits of the magnitude 2^-22
	dynamicCells = 22<<7 + 1       // up to and including 1
)

// dynamicCode returns the code nearest to v in [-1, 1], the lower of equals.
func dynamicCode(v float32) byte {
	bits := math.Float32bits(v)
	i := max(int(bits&0x7fffffff>>16)-dynamicBase, 0)
	lo := int(dynamicStart[i+int(bits>>31)*dynamicCells])
	for lo < 255 && dynamicMap[lo+1] <= v {
		lo++
	}
	if lo < 255 && dynamicMap[lo+1]-v < v-dynamicMap[lo] {
		lo++
	}
	return byte(lo)
}

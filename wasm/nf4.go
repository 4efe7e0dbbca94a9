package wasm

import "math"

// NF4Levels are the 16 values of NormalFloat-4 in code order (QLoRA, Dettmers et
// al. 2023, appendix E). A stored value is NF4Levels[code] times its block's scale.
var NF4Levels = [16]float32{
	-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
	-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
	0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
	0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
}

// nf4Zero is the code of level 0; it fills the end of an odd tensor.
const nf4Zero = 7

// NF4CodesSize returns the bytes of codes of n values: two a byte.
func NF4CodesSize(n int) int { return (n + 1) / 2 }

// NF4ScalesLen returns the number of blocks, hence of scales, of n values.
func NF4ScalesLen(n, block int) int { return (n + block - 1) / block }

// QuantizeNF4 fills codes and scales from the flattened tensor src, in the layout
// of bitsandbytes: blocks of block values, the last one may be short; a block's
// scale is its largest magnitude; the first value of a byte is in its high
// nibble. A value takes the nearest level of value/scale, the lower one on a tie.
// A block of zeros has scale 0. src must be finite; lengths must be those of
// NF4CodesSize and NF4ScalesLen; block must be even.
func QuantizeNF4(codes []byte, scales []float32, src []float32, block int) {
	for b := range scales {
		from, to := b*block, min((b+1)*block, len(src))
		scales[b] = quantizeBlock(codes[from/2:(to+1)/2], src[from:to])
	}
}

func quantizeBlock(codes []byte, part []float32) (scale float32) {
	for _, v := range part {
		scale = max(scale, float32(math.Abs(float64(v))))
	}
	for j := range codes {
		codes[j] = nf4Code(part, 2*j, scale)<<4 | nf4Code(part, 2*j+1, scale)
	}
	return scale
}

func nf4Code(part []float32, j int, scale float32) byte {
	if j >= len(part) || scale == 0 {
		return nf4Zero
	}
	v := part[j] / scale
	lo, hi := 0, len(nf4Middle)
	for lo < hi { // first middle >= v
		mid := (lo + hi) / 2
		if v <= nf4Middle[mid] {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return byte(lo)
}

// nf4Middle[i] separates level i from level i+1.
var nf4Middle = func() (m [15]float32) {
	for i := range m {
		m[i] = float32((float64(NF4Levels[i]) + float64(NF4Levels[i+1])) / 2)
	}
	return m
}()

// DequantizeNF4 is the inverse of QuantizeNF4 up to rounding: it fills dst from
// codes and scales of as many values.
func DequantizeNF4(dst []float32, codes []byte, scales []float32, block int) {
	for i := range dst {
		code := codes[i/2] >> (4 * (1 - i&1)) & 15
		dst[i] = NF4Levels[code] * scales[i/block]
	}
}

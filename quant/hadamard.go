package quant

import "math"

// hadamardRows negates the values of x whose bit in signs is set, then replaces
// each consecutive r values by their Walsh-Hadamard transform in natural order,
// not normalised. r is a power of two of at least 64 that divides len(x).
func hadamardRows(x []float32, r int, signs []uint64) {
	for k := 0; k < len(x); k += r {
		applySigns(x[k:k+r], signs[k/64:(k+r)/64])
		hadamard(x[k : k+r])
	}
}

// hadamard is the transform of one row: butterflies at distance 1, 2, 4, ...
// That order fixes every rounding, so that all implementations agree bit by bit.
func hadamard(x []float32) {
	for i := 0; i+8 <= len(x); i += 8 {
		v := x[i : i+8 : i+8]
		a0, a1 := v[0]+v[1], v[0]-v[1]
		a2, a3 := v[2]+v[3], v[2]-v[3]
		a4, a5 := v[4]+v[5], v[4]-v[5]
		a6, a7 := v[6]+v[7], v[6]-v[7]
		b0, b2 := a0+a2, a0-a2
		b1, b3 := a1+a3, a1-a3
		b4, b6 := a4+a6, a4-a6
		b5, b7 := a5+a7, a5-a7
		v[0], v[4] = b0+b4, b0-b4
		v[1], v[5] = b1+b5, b1-b5
		v[2], v[6] = b2+b6, b2-b6
		v[3], v[7] = b3+b7, b3-b7
	}
	for h := 8; h < len(x); h *= 2 {
		for i := 0; i < len(x); i += 2 * h {
			lo, hi := x[i:i+h], x[i+h:i+2*h]
			for j := range lo {
				a, b := lo[j], hi[j]
				lo[j], hi[j] = a+b, a-b
			}
		}
	}
}

// applySigns negates the values of x whose bit in signs is set.
func applySigns(x []float32, signs []uint64) {
	for i, w := range signs {
		v := x[64*i : 64*i+64 : 64*i+64]
		for j := range v {
			v[j] = math.Float32frombits(math.Float32bits(v[j]) ^ uint32(w>>j)<<31)
		}
	}
}

// transpose writes the rows by cols matrix src, row by row, to dst as cols by
// rows, in tiles that stay in the first-level cache.
func transpose(dst, src []float32, rows, cols int) {
	const tile = 16
	for r0 := 0; r0 < rows; r0 += tile {
		r1 := min(r0+tile, rows)
		for c := range cols {
			out := dst[c*rows+r0 : c*rows+r1]
			for k := range out {
				out[k] = src[(r0+k)*cols+c]
			}
		}
	}
}

package kernel

import "github.com/starling-fl/starling/quant/nf4"

// packCodes packs up to 16 columns of a 4-bit tensor: it decodes runs of codes that
// stand together, and packs those as packPanel does.
func (w *worker) packCodes(dst []float32, b int, cols, terms []int) {
	n, by := run(cols)
	even, step := run(terms)
	switch {
	case w.kernel.unpack != nil && n == panel && step == 1 && even == len(terms) && even%nf4.Block == 0 && w.p.NF4.Block == nf4.Block &&
		by%nf4.Block == 0 && (b+cols[0]+terms[0])%nf4.Block == 0: // so do whole blocks of a column
		w.packWords(b+cols[0]+terms[0], panel, by, even)
		w.kernel.unpack(&dst[0], &w.decoded[0], even/nf4.Block)
	case by == 1 && n == panel: // the values of a term stand together
		for i, t := range terms {
			w.values(dst[i*panel:][:panel], b+cols[0]+t)
		}
	case step == 1 && even == len(terms): // the values of a column stand together
		var at [panel]int
		var k [maxTerms]int
		for c, col := range cols {
			at[c] = c * maxTerms
			w.values(w.decoded[at[c]:][:even], b+col+terms[0])
		}
		for i := range even {
			k[i] = i
		}
		w.packPanel(dst, w.decoded[:], 0, at[:len(cols)], k[:even])
	default:
		clear(dst)
		for i, t := range terms {
			for c, col := range cols {
				w.values(dst[i*panel+c:][:1], b+col+t)
			}
		}
	}
}

// packCodeLines is packLines for a 4-bit tensor: it decodes a term's values of several panels at a time.
func (w *worker) packCodeLines(b int, cols, terms []int) int {
	n, by := run(cols)
	if n &^= panel - 1; by != 1 || n == 0 {
		return 0
	}
	q := w.p.NF4
	codes, scales := w.bytes[q.Codes:][:(q.Len+1)/2], w.floats[q.Scales/4:]
	for i, t := range terms {
		at := b + cols[0] + t
		if at%panel != 0 {
			return 0
		}
		for col := 0; col < n; {
			some := min(n-col, q.Block-(at+col)%q.Block)
			_, _ = codes[(at+col)/2:][:some/2], w.b[(col+some-panel)*len(terms)+i*panel:][:panel]
			w.kernel.decode(&w.b[col*len(terms)+i*panel], panel*len(terms), &codes[(at+col)/2], some, scales[(at+col)/q.Block])
			col += some
		}
	}
	return n
}

// values decodes values from the given one on.
func (w *worker) values(dst []float32, from int) {
	q := w.p.NF4
	codes := w.bytes[q.Codes:][:(q.Len+1)/2]
	for len(dst) > 0 {
		scale := w.floats[q.Scales/4+from/q.Block]
		n := min(len(dst), q.Block-from%q.Block)
		if fast := n &^ (panel - 1); from%2 == 0 && fast > 0 {
			_ = codes[from/2+fast/2-1]
			w.kernel.decode(&dst[0], panel, &codes[from/2], fast, scale)
			dst, from, n = dst[fast:], from+fast, n-fast
		}
		for i := range n {
			code := codes[(from+i)/2] >> (4 * (1 - (from+i)&1)) & 15
			dst[i] = levels[code] * scale
		}
		dst, from = dst[n:], from+n
	}
}

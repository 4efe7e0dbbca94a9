package kernel

// strip is a few neighbouring rows of a block of C. Distances are in elements.
type strip struct {
	src       []float32 // memory, or packed rows
	a         int       // first row and term in src
	row, term int       // from one row, from one term to the next
	c         int       // first element of C in memory
	line      int       // from one row of C to the next
	rows      int       // 1 to high
	cols      int
	terms     int
}

// rows computes rows of a block of C against the packed columns, those left out that
// are idle. a and c are where its operands start; rowA, rowC and termA say the rest.
func (w *worker) rows(a, c int, idle []bool, cols, terms int, add bool) {
	rows := len(idle)
	w.findIdle(a, idle, cols, w.termA[:terms], add)
	w.t.k, w.t.next, w.t.add = uintptr(terms), uintptr(4*panel*terms), 0
	if add {
		w.t.add = 1
	}
	even, term := run(w.termA[:terms])
	evenA, rowA := run(w.rowA[:rows])
	evenC, lineC := run(w.rowC[:rows])
	for from := 0; from < rows; {
		if idle[from] {
			if !add {
				clear(w.floats[c+w.rowC[from]:][:cols])
			}
			from++
			continue
		}
		end := from + 1
		for end < from+w.kernel.take(rows-from) && !idle[end] {
			end++
		}
		n, line := end-from, lineC
		if end > evenC {
			n, line = run(w.rowC[from:end])
		}
		apart, row := n, rowA
		if from+n > evenA {
			apart, row = run(w.rowA[from : from+n])
		}
		s := strip{src: w.floats, a: a + w.rowA[from] + w.termA[0], row: row, term: term, c: c + w.rowC[from], line: line,
			rows: n, cols: cols, terms: terms}
		if apart < n || even < terms {
			w.packA(a, w.rowA[from:from+n], w.termA[:terms])
			s.src, s.a, s.row, s.term = w.a[:], 0, 1, high
		}
		w.strip(&s)
		from += n
	}
}

// strip computes a strip tile by tile.
func (w *worker) strip(s *strip) {
	// Prepare made sure of every address. That the corners of what is computed here are in bounds costs nothing beside the
	// work, and would make a panic of a mistake in this package.
	corners(s.src, s.a, (s.rows-1)*s.row, (s.terms-1)*s.term)
	corners(w.floats, s.c, (s.rows-1)*s.line, s.cols-1)
	_ = w.b[ceil(s.cols, panel)*panel*s.terms-1]
	t, k := &w.t, w.kernel
	tiles := k.tiles
	if w.p.Fused {
		tiles = k.fused
	}
	t.row, t.term, t.line = uintptr(4*s.row), uintptr(4*s.term), uintptr(4*s.line)
	for col := 0; col < s.cols; {
		left := ceil(s.cols-col, panel)
		wide := min(left, k.widths)
		if left == k.widths+1 && wide > 2 {
			wide = left / 2 // two tiles of a like width, rather than one that is narrow
		}
		t.b = &w.b[col*s.terms]
		t.width(min(wide*panel, s.cols-col) - (wide-1)*panel)
		for row, i := 0, 0; row < s.rows; {
			for !k.fits(i, s.rows-row) {
				i++
			}
			t.a = &s.src[s.a+row*s.row]
			t.c = &w.floats[s.c+row*s.line+col]
			tiles[i][wide-1](t.words())
			row += k.heights[i]
		}
		col += wide * panel
	}
	t.a, t.b, t.c = nil, nil, nil
}

// take is how many of the rows that are left make a strip: whole tiles, or all of those that are left.
func (k *Kernel) take(left int) int {
	if left <= high {
		return left
	}
	return high / k.heights[0] * k.heights[0]
}

// fits tells whether tiles of the i-th height are next where so many rows are left: two of a like height rather than one
// that leaves a low one.
func (k *Kernel) fits(i, left int) bool {
	h := k.heights[i]
	return h == left || h < left && (i+1 == len(k.heights) || 2*k.heights[i+1] < left)
}

// corners panics where a parallelogram of elements reaches outside of s.
func corners(s []float32, at, x, y int) {
	_, _, _, _ = s[at], s[at+x], s[at+y], s[at+x+y]
}

// packA packs up to high rows, term by term, into w.a. a is where A starts.
func (w *worker) packA(a int, rows, terms []int) {
	n, by := run(rows)
	for from := 0; from < len(terms); {
		// A run of neighbouring terms of evenly spaced rows is transposed in registers, the rest moved one by one.
		even, step := run(terms[from:])
		fast := 0
		if n == high && len(rows) == high && step == 1 {
			fast = even &^ 7
		}
		if fast > 0 {
			at := a + rows[0] + terms[from]
			corners(w.floats, at, (high-1)*by, fast-1)
			w.kernel.transpose(&w.a[from*high], high, &w.floats[at], by, fast)
		}
		for i := from + fast; i < from+even; i++ {
			dst := w.a[i*high:][:high]
			for r, row := range rows {
				dst[r] = w.floats[a+row+terms[i]]
			}
		}
		from += even
	}
}

// packB packs columns, term by term, into panels. b is where B starts: an element of
// memory or a value of a 4-bit tensor. What a last panel has too many columns is
// zeros, which no result sees.
func (w *worker) packB(b int, cols, terms []int) {
	w.finite = finiteUnknown
	if need := ceil(len(cols), panel) * panel * len(terms); cap(w.b) < need {
		w.b = make([]float32, need)
	} else {
		w.b = w.b[:need]
	}
	from := 0
	if w.p.NF4 == nil {
		from = w.packLines(b, cols, terms)
	} else {
		from = w.packCodeLines(b, cols, terms)
	}
	for ; from < len(cols); from += panel {
		dst := w.b[from*len(terms):][:panel*len(terms)]
		part := cols[from:min(from+panel, len(cols))]
		if w.p.NF4 != nil {
			w.packCodes(dst, b, part, terms)
			continue
		}
		w.packPanel(dst, w.floats, b, part, terms)
	}
}

// packLines packs whole panels of columns that are neighbours in memory, and returns how
// many columns that are. It goes along memory, a term of all panels at a time, as
// processors foresee that better.
func (w *worker) packLines(b int, cols, terms []int) int {
	n, by := run(cols)
	if n &^= panel - 1; by != 1 || n < 4*panel {
		return 0
	}
	for i, t := range terms {
		at := b + cols[0] + t
		corners(w.floats, at, n-1, 0)
		w.kernel.gather(&w.b[i*panel], panel*len(terms), &w.floats[at], panel, n/panel)
	}
	return n
}

// packPanel packs up to 16 columns of src.
func (w *worker) packPanel(dst, src []float32, b int, cols, terms []int) {
	if len(cols) < panel {
		clear(dst)
	}
	n, by := run(cols)
	for from := 0; from < len(terms); {
		even, step := run(terms[from:])
		done := 0 // terms of this run
		wide := 0 // columns that are done for these terms
		at := b + cols[0] + terms[from]
		switch {
		case by == 1 && n == panel:
			corners(src, at, panel-1, (even-1)*step)
			w.kernel.gather(&dst[from*panel], panel, &src[at], step, even)
			done, wide = even, panel
		case step == 1 && n == len(cols) && n >= 8 && even >= 8:
			done, wide = even&^7, n&^7
			corners(src, at, (wide-1)*by, done-1)
			for c := 0; c < wide; c += 8 {
				w.kernel.transpose(&dst[from*panel+c], panel, &src[at+c*by], by, done)
			}
		}
		left := from
		if wide == len(cols) {
			left += done
		}
		for i := left; i < from+even; i++ {
			first := 0
			if i < from+done {
				first = wide
			}
			for c := first; c < len(cols); c++ {
				dst[i*panel+c] = src[b+cols[c]+terms[i]]
			}
		}
		from += even
	}
}

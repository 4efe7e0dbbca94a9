package kernel

import "unsafe"

// reduceBlock reduces every row of the block to a result.
func (w *loopWorker) reduceBlock() {
	o := &w.outs[0]
	src := (*uint32)(w.at[o.place])
	n := w.wide
	dst, direct := &w.result[0], w.resultsTogether(&o.walk)
	if direct {
		dst = w.word(w.first(&o.walk))
	}
	switch {
	case w.order == Row && n%group == 0:
		w.lanes.rows[w.reduce](dst, src, w.high, n/group)
	default:
		s, d := words32(src, w.high*n), words32(dst, w.high)
		for r := range d {
			d[r] = w.reduceRow(s[r*n:][:n])
		}
	}
	if !direct {
		s := w.result
		for k, r := w.walker(&o.walk), 0; r < w.high; r++ {
			w.save(s[r:][:1], k.at, 4)
			k.next()
		}
	}
}

// resultsTogether tells whether one result a row follows another in memory.
func (w *loopWorker) resultsTogether(o *walk) bool {
	return w.high == 1 || w.row%o.chain+w.high <= o.chain
}

// reduceRow reduces a whole row.
func (w *loopWorker) reduceRow(row []uint32) uint32 {
	w.part.begin(w.neutral)
	w.reducePiece(row)
	return w.reduced()
}

// reducePiece goes on with a row or a piece of one.
func (w *loopWorker) reducePiece(row []uint32) {
	if w.order == Serial {
		for _, v := range row {
			w.part.extra = w.combine(w.part.extra, v)
		}
		return
	}
	if n := len(row) / group; n > 0 {
		w.lanes.columns[w.reduce](&w.part.p[0], &row[0], n, 4*group, 1)
		row = row[n*group:]
	}
	w.part.add(w.combine, row)
}

func (w *loopWorker) reduced() uint32 {
	if w.order == Serial {
		return w.part.extra
	}
	return w.part.end(w.combine, w.cols)
}

// reduceRows reduces the neighbouring rows that make one result, or one long row.
func (w *loopWorker) reduceRows(row int) bool {
	o := &w.outs[0]
	w.part.begin(w.neutral)
	for r := row; r < row+w.mid; r += w.height {
		high := min(w.height, row+w.mid-r)
		for col := 0; col < w.cols; col += w.width {
			wide := min(w.width, w.cols-col)
			if !w.compute(r, high, col, wide) {
				return false
			}
			for values := words32((*uint32)(w.at[o.place]), high*wide); len(values) > 0; values = values[wide:] {
				w.reducePiece(values[:wide])
			}
		}
	}
	w.row, w.col = row, 0
	w.locate()
	w.result[0] = w.reduced()
	w.save(w.result[:1], w.first(&o.walk), 4)
	return true
}

// reduceColumns reduces the rows from the given one on, some columns of them: a block of results.
func (w *loopWorker) reduceColumns(row, col int) bool {
	o := &w.outs[0]
	wide := min(w.width, w.cols-col)
	acc := w.result[:ceil(wide, group)*group]
	for i := range acc {
		acc[i] = w.neutral
	}
	for r := row; r < row+w.mid; r += w.height {
		high := min(w.height, row+w.mid-r)
		if !w.compute(r, high, col, wide) {
			return false
		}
		src := w.at[o.place]
		if wide%group != 0 && src != w.buffer(o.place) { // no whole groups behind the last row
			s := words32((*uint32)(src), high*wide)
			for i, v := range s {
				acc[i%wide] = w.combine(acc[i%wide], v)
			}
			continue
		}
		by := 4 * wide
		if w.groups && src != w.buffer(o.place) {
			by += int(w.jump(o.place))
		}
		w.lanes.columns[w.reduce](&acc[0], (*uint32)(src), high, by, len(acc)/group)
	}
	w.row, w.high, w.col, w.wide = row, 1, col, wide
	w.locate()
	w.store(&o.walk, unsafe.Pointer(&acc[0]))
	return true
}

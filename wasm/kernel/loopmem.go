package kernel

import "unsafe"

// walker goes through the rows of an operand.
type walker struct {
	at    int
	index [maxLoops]int
	sizes []int
	by    []int
}

func (w *loopWorker) walker(o *walk) walker {
	return walker{at: w.first(o), index: w.index, sizes: w.sizes, by: o.by}
}

// next goes to the next row.
func (k *walker) next() {
	for i := len(k.by) - 1; i >= 0; i-- {
		k.at += k.by[i]
		if k.index[i]++; k.index[i] < k.sizes[i] {
			return
		}
		k.at -= k.by[i] * k.sizes[i]
		k.index[i] = 0
	}
}

// other executes what is no kernel.
func (w *loopWorker) other(in *instr) {
	dst, src := (*uint32)(w.at[in.dst]), (*uint32)(w.at[in.in[0]])
	switch f := &w.places[in.dst]; in.op {
	case opFetch:
		w.fetch(f, w.at[in.dst])
	case opConst:
		for i := range group {
			words32(dst, group)[i] = in.bits
		}
	case opSpread:
		switch {
		case f.split:
			w.lanes.spread(dst, src, w.high, group)
		case w.wide >= group:
			w.lanes.spread(dst, src, w.high, w.wide)
		default:
			spreadPlain(dst, src, w.high, w.wide)
		}
	case opRepeat:
		d := words32(dst, w.height*w.wide)
		for n := copy(d, words32(src, w.wide)); n < len(d); n *= 2 {
			copy(d[n:], d[:n])
		}
	}
}

// fetch copies the block's values of an operand to lanes.
func (w *loopWorker) fetch(f *place, to unsafe.Pointer) {
	o, dst := f.walk, (*uint32)(to)
	switch {
	case f.one:
		d := words32(dst, group)
		w.load(d[:1], w.first(o), 4)
		for i := range d {
			d[i] = d[0]
		}
	case f.extent == alongCols:
		w.load(words32(dst, w.wide), w.first(o), o.col)
	case w.together(o):
		w.load(words32(dst, w.values(f.extent, false)), w.first(o), 4)
	default:
		n := 1
		if f.extent == whole {
			n = w.wide
		}
		d := words32(dst, w.high*n)
		for k := w.walker(o); ; k.next() {
			w.load(d[:n], k.at, o.col)
			if d = d[n:]; len(d) == 0 {
				return
			}
		}
	}
}

func (w *loopWorker) word(at int) *uint32 { return (*uint32)(unsafe.Add(w.memory, at)) }

// load copies values that are some bytes apart.
func (w *loopWorker) load(dst []uint32, at, by int) {
	if by == 4 {
		copy(dst, words32(w.word(at), len(dst)))
		return
	}
	for i := range dst {
		dst[i] = *w.word(at + i*by)
	}
}

// store copies the block's lanes to a result.
func (w *loopWorker) store(o *walk, src unsafe.Pointer) {
	s := words32((*uint32)(src), w.high*w.wide)
	if w.together(o) {
		w.save(s, w.first(o), 4)
		return
	}
	for k := w.walker(o); ; k.next() {
		w.save(s[:w.wide], k.at, o.col)
		if s = s[w.wide:]; len(s) == 0 {
			return
		}
	}
}

// save copies values to places that are some bytes apart.
func (w *loopWorker) save(src []uint32, at, by int) {
	if by == 4 {
		copy(words32(w.word(at), len(src)), src)
		return
	}
	for i, v := range src {
		*w.word(at + i*by) = v
	}
}

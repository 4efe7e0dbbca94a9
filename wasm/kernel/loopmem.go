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
	dst, src := w.at[in.dst], w.at[in.in[0]]
	switch f := &w.places[in.dst]; in.op {
	case opFetch:
		w.fetch(f, dst)
	case opIota:
		w.iota(&w.iotas[in.index], words32(dst, max(group, w.values(f.extent, f.one))), f)
	case opSpread:
		if w.wide >= group {
			w.lanes.spread(dst, src, w.high, w.wide)
		} else {
			spreadPlain(dst, src, w.high, w.wide)
		}
	case opRepeat:
		d := words32(dst, w.height*w.wide)
		for n := copy(d, words32(src, w.wide)); n < len(d); n *= 2 {
			copy(d[n:], d[:n])
		}
	}
}

// iota writes counters.
func (w *loopWorker) iota(i *iota32, dst []uint32, f *place) {
	switch {
	case f.extent&alongCols != 0:
		v := i.base + int32(w.col)*i.col
		for c := range dst {
			dst[c] = uint32(v)
			v += i.col
		}
	default:
		k := walker{at: int(i.base), index: w.index, sizes: w.sizes, by: i.by}
		for r, by := range i.by {
			k.at += w.index[r] * by
		}
		for r := range dst {
			dst[r] = uint32(k.at)
			if !f.one {
				k.next()
			}
		}
	}
}

// fetch copies the block's values of an operand to lanes.
func (w *loopWorker) fetch(f *place, dst unsafe.Pointer) {
	o := f.walk
	switch {
	case f.one:
		d := words32(dst, group)
		w.load(d[:1], o.kind, w.first(o), 0)
		for i := range d {
			d[i] = d[0]
		}
	case f.extent == alongCols:
		w.load(words32(dst, w.wide), o.kind, w.first(o), o.col)
	case w.together(o):
		w.load(words32(dst, w.values(f.extent, false)), o.kind, w.first(o), o.kind.size())
	default:
		n := 1
		if f.extent == whole {
			n = w.wide
		}
		d := words32(dst, w.high*n)
		for k := w.walker(o); ; k.next() {
			w.load(d[:n], o.kind, k.at, o.col)
			if d = d[n:]; len(d) == 0 {
				return
			}
		}
	}
}

// load copies values that are some bytes apart.
func (w *loopWorker) load(dst []uint32, kind Type, at, by int) {
	switch n := len(dst) / group; {
	case kind == Bool && by == 1:
		if n > 0 {
			w.lanes.widen(unsafe.Pointer(&dst[0]), unsafe.Add(w.memory, at), n)
		}
		for i := n * group; i < len(dst); i++ {
			dst[i] = -uint32(*(*byte)(unsafe.Add(w.memory, at+i)))
		}
	case kind == Bool:
		for i := range dst {
			dst[i] = -uint32(*(*byte)(unsafe.Add(w.memory, at+i*by)))
		}
	case by == 4:
		copy(dst, words32(unsafe.Add(w.memory, at), len(dst)))
	default:
		for i := range dst {
			dst[i] = *(*uint32)(unsafe.Add(w.memory, at+i*by))
		}
	}
}

// store copies the block's lanes to a result.
func (w *loopWorker) store(o *walk, src unsafe.Pointer) {
	if w.together(o) {
		w.save(words32(src, w.high*w.wide), o.kind, w.first(o), o.kind.size())
		return
	}
	s := words32(src, w.high*w.wide)
	for k := w.walker(o); ; k.next() {
		w.save(s[:w.wide], o.kind, k.at, o.col)
		if s = s[w.wide:]; len(s) == 0 {
			return
		}
	}
}

// save copies values to places that are some bytes apart.
func (w *loopWorker) save(src []uint32, kind Type, at, by int) {
	switch n := len(src) / group; {
	case kind == Bool && by == 1:
		if n > 0 {
			w.lanes.narrow(unsafe.Add(w.memory, at), unsafe.Pointer(&src[0]), n)
		}
		for i := n * group; i < len(src); i++ {
			*(*byte)(unsafe.Add(w.memory, at+i)) = byte(src[i] & 1)
		}
	case kind == Bool:
		for i, v := range src {
			*(*byte)(unsafe.Add(w.memory, at+i*by)) = byte(v & 1)
		}
	case by == 4:
		copy(words32(unsafe.Add(w.memory, at), len(src)), src)
	default:
		for i, v := range src {
			*(*uint32)(unsafe.Add(w.memory, at+i*by)) = v
		}
	}
}

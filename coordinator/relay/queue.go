package relay

import (
	"slices"
	"sync"
)

// Buffers of a few sizes are shared by all streams, of which most are idle.
var (
	sizes   = [...]int{1 << 12, 1 << 14, 1 << 16, downWindow}
	buffers [len(sizes)]sync.Pool
)

func buffer(least int) []byte {
	i, _ := slices.BinarySearch(sizes[:], least)
	if b, ok := buffers[i].Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 0, sizes[i])
}

func release(b []byte) {
	if i, is := slices.BinarySearch(sizes[:], cap(b)); is {
		b = b[:0]
		buffers[i].Put(&b)
	}
}

// queue is bytes in order, at most downWindow. Empty, it holds none of memory.
type queue struct {
	b  []byte
	at int // read
}

func (q *queue) len() int { return len(q.b) - q.at }

func (q *queue) add(p []byte) {
	switch {
	case q.b == nil:
		q.b = buffer(len(p))
	case len(q.b)+len(p) > cap(q.b):
		larger := append(buffer(q.len()+len(p)), q.b[q.at:]...)
		release(q.b)
		q.b, q.at = larger, 0
	}
	q.b = append(q.b, p...)
}

// next are n bytes of it, good until it is touched again.
func (q *queue) next(n int) []byte {
	p := q.b[q.at:][:n]
	q.at += n
	return p
}

// tidy is to be called behind next.
func (q *queue) tidy() {
	if q.b != nil && q.len() == 0 {
		q.drop()
	}
}

// drop forgets what is in it.
func (q *queue) drop() {
	if q.b != nil {
		release(q.b)
	}
	*q = queue{}
}

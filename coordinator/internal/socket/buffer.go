package socket

import (
	"slices"
	"sync"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Buffers of a few sizes are shared by all connections: most of them are idle, and
// one each would be most of a coordinator's memory.
var (
	sizes   = [...]int{1 << 12, freeRead, 1 << 16, chunkRead, mostRead}
	buffers [len(sizes)]sync.Pool
)

// chunkRead holds a chunk of an update as our devices cut it.
const chunkRead = 1<<18 + 1<<8

// mostRead is one byte more than the library lets through before it says that a
// message is too large, which is one more than the limit.
const mostRead = wire.MaxFrame + 2

// buffer is empty and has room for least bytes, at most mostRead.
func buffer(least int) *[]byte {
	i, _ := slices.BinarySearch(sizes[:], least)
	if b, ok := buffers[i].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, sizes[i])
	return &b
}

func release(b *[]byte) {
	i, _ := slices.BinarySearch(sizes[:], cap(*b))
	*b = (*b)[:0]
	buffers[i].Put(b)
}

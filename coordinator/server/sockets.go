package server

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/origin"
)

// Bounds of every connection, whatever is spoken on it.
const (
	// sparedFiles is how many of the process's open files no connection takes: the
	// store, the exported checkpoint, listeners, the program's own.
	sparedFiles = 128
	// headerTimeout is for a request's header, TLS included, idleTimeout for the
	// next request of a connection.
	headerTimeout = 10 * time.Second
	idleTimeout   = time.Minute
	// writeTimeout is for what the peer is sent, a buffer at a time.
	writeTimeout = 30 * time.Second
)

// sockets is the one cap over all listeners, and over the connections of one
// address. A connection beyond it is closed before a byte of it is read.
type sockets struct {
	most    int
	address int  // of one address
	spare   bool // this machine's own addresses are held to most only: a proxy's, or a fleet of processes

	mu   sync.Mutex
	n    int                  // guarded by mu
	from map[netip.Prefix]int // guarded by mu
}

// newSockets caps connections at want, or at what the process's limit of open
// files allows; address 0 is an eighth of that.
func newSockets(want, address, files int) *sockets {
	s := &sockets{most: want, address: address, from: map[netip.Prefix]int{}}
	if files > 0 {
		s.most = min(want, max(files-sparedFiles, files/4))
	}
	if address <= 0 {
		s.address, s.spare = max(s.most/8, 64), true
	}
	return s
}

// filesFor is how many open files bound devices' connections; 0: none do.
func filesFor(gateways bool) int {
	if gateways {
		return 0
	}
	return openFiles()
}

// enter counts a connection in; the returned function, to be called once, out
// again; nil if there are too many.
func (s *sockets) enter(a net.Addr) (leave func()) {
	from := origin.Of(a.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n >= s.most || s.from[from] >= s.address && !(s.spare && from.Addr().IsLoopback()) {
		return nil
	}
	s.n++
	s.from[from]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.n--
		if s.from[from]--; s.from[from] == 0 {
			delete(s.from, from)
		}
	}
}

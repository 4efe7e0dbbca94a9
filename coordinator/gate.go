package coordinator

import "sync"

// gate counts the open connections, refuses more than limit, and tells when
// there are none.
type gate struct {
	limit int

	mu     sync.Mutex
	n      int           // guarded by mu
	closed bool          // guarded by mu
	empty  chan struct{} // guarded by mu: closed when n is 0; nil: nobody asked
}

// enter counts a connection in; false where the gate is closed or full.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.n >= g.limit {
		return false
	}
	g.n++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.n == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// idle returns a channel that is closed when there is no connection.
func (g *gate) idle() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.empty != nil {
		return g.empty
	}
	empty := make(chan struct{})
	if g.n == 0 {
		close(empty)
	} else {
		g.empty = empty
	}
	return empty
}

// close lets nobody in any more; again says that it was closed before.
func (g *gate) close() (idle <-chan struct{}, again bool) {
	g.mu.Lock()
	again, g.closed = g.closed, true
	g.mu.Unlock()
	return g.idle(), again
}

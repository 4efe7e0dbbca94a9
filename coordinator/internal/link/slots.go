package link

import "sync"

// Slots counts the open connections, refuses more than Limit, and tells when
// there are none.
type Slots struct {
	Limit int // set before the first connection

	mu     sync.Mutex
	n      int           // guarded by mu
	closed bool          // guarded by mu
	empty  chan struct{} // guarded by mu: closed when n is 0; nil: nobody asked
}

// Enter counts a connection in; false if they are closed or full.
func (s *Slots) Enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.n >= s.Limit {
		return false
	}
	s.n++
	return true
}

// Leave counts it out.
func (s *Slots) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n--
	if s.n == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// Idle returns a channel that is closed when there is no connection.
func (s *Slots) Idle() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.empty != nil {
		return s.empty
	}
	empty := make(chan struct{})
	if s.n == 0 {
		close(empty)
	} else {
		s.empty = empty
	}
	return empty
}

// Close refuses all later entries; again reports whether it was closed before.
func (s *Slots) Close() (idle <-chan struct{}, again bool) {
	s.mu.Lock()
	again, s.closed = s.closed, true
	s.mu.Unlock()
	return s.Idle(), again
}

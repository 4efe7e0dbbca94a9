package socket

import (
	"net"
	"slices"
	"sync"
	"time"
)

// Room bounds what all connections together hold of frames on their way in: each is
// read into a buffer and decoded into another. A frame of up to freeRead bytes needs
// none of it, a longer one that for the longest of its kind before more of it is read;
// if there is none its reader waits, and its peer with it, since TCP then takes
// nothing more from it. A slow sender is cut off while others wait.
type Room struct {
	most int // bytes

	mu    sync.Mutex
	used  int           // guarded by mu
	begun []*hold       // guarded by mu: frames that are not whole, the oldest first
	freed chan struct{} // guarded by mu: closed when something was given back
}

const (
	// freeRead is how much of a frame is read without room: ten thousand of them are
	// a sixth of DefaultRoom.
	freeRead = 1 << 14
	// DefaultRoom holds five hundred of the longest frames at once. What takes so much
	// of a line's time that more come together is slower than the machine's own.
	DefaultRoom = 1 << 30
	// patience is how long a frame may take while others wait for its room: 256 KiB on
	// a line of 9 kB/s.
	patience = 30 * time.Second
)

// hold is a connection's part of the room.
type hold struct {
	n     int           // of bytes, by Room.mu; 0: none
	since time.Time     // by Room.mu: when it was taken
	gone  chan struct{} // closed when the connection is
	end   func()        // closes it
}

// NewRoom makes room for so many bytes, and for one of the longest frames at least.
func NewRoom(most int) *Room {
	return &Room{most: max(most, 2*mostRead), freed: make(chan struct{})}
}

// take waits for room for a frame of n bytes and what is decoded of it.
func (r *Room) take(h *hold, n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		select {
		case <-h.gone: // who closes gives back what is held by then
			return net.ErrClosed
		default:
		}
		if r.used+2*n <= r.most {
			h.n, h.since = 2*n, time.Now()
			r.used += h.n
			r.begun = append(r.begun, h)
			return nil
		}
		freed, over := r.freed, time.NewTimer(r.hurry(time.Now()))
		r.mu.Unlock()
		select {
		case <-freed:
		case <-over.C:
		case <-h.gone:
		}
		over.Stop()
		r.mu.Lock()
	}
}

// hurry cuts off the frame that was begun first where patience with it is over, and
// tells when to look again.
func (r *Room) hurry(now time.Time) time.Duration {
	if len(r.begun) == 0 {
		return patience // all are whole, and soon gone
	}
	if left := patience - now.Sub(r.begun[0].since); left > 0 {
		return left
	}
	go r.begun[0].end() // which may wait for its reader
	r.begun = r.begun[1:]
	return time.Second
}

// whole says that the frame is there: it holds its room, and nobody hurries it.
func (r *Room) whole(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(h)
}

// give gives back what is held, if anything is.
func (r *Room) give(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.n == 0 {
		return
	}
	r.forget(h)
	r.used -= h.n
	h.n = 0
	close(r.freed)
	r.freed = make(chan struct{})
}

func (r *Room) forget(h *hold) {
	if i := slices.Index(r.begun, h); i >= 0 {
		r.begun = slices.Delete(r.begun, i, i+1)
	}
}

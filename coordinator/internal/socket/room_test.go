package socket

import (
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/leaf/pipes"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// held is what a room's connections hold of it, and how many of them.
func (r *Room) held() (bytes, frames int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used, len(r.begun)
}

// Two hundred peers send all but the end of a frame of the largest size: of all of them
// together no more is held than there is room for, and who sends a whole one is heard,
// within a patience.
func TestHostileManyLongFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			peers = 200
			fit   = 5
		)
		wires := pipes.New()
		terms := anything()
		terms.Room = NewRoom(2 * fit * wire.MaxFrame)
		heard := make(chan int, peers)
		serveUnder(t, wires, terms, func(s *Socket) {
			for {
				b, err := s.Read()
				if err != nil {
					return
				}
				heard <- len(b)
			}
		})
		var writers sync.WaitGroup
		for range peers {
			conn := dialed(t, wires, wires.Client())
			writers.Go(func() {
				w, err := conn.Writer(t.Context(), websocket.MessageBinary)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = w.Write(make([]byte, wire.MaxFrame-1)) // it blocks, until it is cut off
			})
		}
		synctest.Wait()
		if used, frames := terms.Room.held(); used > 2*fit*wire.MaxFrame || frames != fit {
			t.Errorf("%d frames hold %d bytes, of room for %d", frames, used, fit)
		}
		honest := dialed(t, wires, wires.Client())
		begun := time.Now()
		writers.Go(func() {
			if err := honest.Write(t.Context(), websocket.MessageBinary, make([]byte, wire.MaxFrame)); err != nil {
				t.Error(err)
			}
		})
		if n := <-heard; n != wire.MaxFrame {
			t.Errorf("%d bytes were heard", n)
		}
		if waited := time.Since(begun); waited < patience/2 || waited > (peers/fit+2)*(patience+time.Second) {
			t.Errorf("a whole frame waited %v", waited)
		}
		honest.CloseNow()
		time.Sleep((peers/fit + 2) * 2 * patience) // the others go as they came: the room is not theirs
		wires.Close()
	})
}

// A frame that is short needs no room; one that is whole is not hurried, and its room
// is free again when the next is read, or its connection is gone.
func TestRoomComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires := pipes.New()
		terms := anything()
		terms.Room = NewRoom(0) // of one frame
		next := make(chan int)
		serveUnder(t, wires, terms, func(s *Socket) {
			for {
				b, err := s.Read()
				if err != nil {
					return
				}
				next <- len(b)
			}
		})
		conn := dialed(t, wires, wires.Client())
		say := func(n int) {
			t.Helper()
			sent := make(chan error, 1)
			go func() { sent <- conn.Write(t.Context(), websocket.MessageBinary, make([]byte, n)) }()
			if got := <-next; got != n {
				t.Errorf("%d of %d bytes", got, n)
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			say(freeRead - 1)
			synctest.Wait()
			if used, _ := terms.Room.held(); used != 0 {
				t.Errorf("a short frame holds %d bytes", used)
			}
			say(wire.MaxFrame)
		}
		synctest.Wait() // the reader waits for the next frame, and holds nothing
		if used, frames := terms.Room.held(); used != 0 || frames != 0 {
			t.Errorf("%d bytes of %d frames are held", used, frames)
		}
		conn.CloseNow()

		// Who is gone gives back what its frame holds, and what waits for room ends with it.
		gone := &hold{gone: make(chan struct{}), end: func() {}}
		if err := terms.Room.take(gone, wire.MaxFrame); err != nil {
			t.Fatal(err)
		}
		waits := &hold{gone: make(chan struct{}), end: func() {}}
		over := make(chan error, 1)
		go func() { over <- terms.Room.take(waits, wire.MaxFrame) }()
		synctest.Wait()
		close(waits.gone)
		if err := <-over; !errors.Is(err, net.ErrClosed) {
			t.Errorf("who waits and is gone: %v", err)
		}
		terms.Room.give(gone)
		terms.Room.give(gone)
		if used, frames := terms.Room.held(); used != 0 || frames != 0 {
			t.Errorf("%d bytes of %d frames are held by who is gone", used, frames)
		}
		wires.Close()
	})
}

// A frame beyond its kind's limit is not read any further.
func TestHostileLengthOfAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wires := pipes.New()
		terms := anything()
		terms.Most = func(kind byte) int { return 1000 * int(kind) }
		got := make(chan error, 2)
		serveUnder(t, wires, terms, func(s *Socket) {
			for range 2 {
				_, err := s.Read()
				got <- err
				if err != nil {
					s.Close(false) // the rest of it is never sent
					return
				}
			}
		})
		conn := dialed(t, wires, wires.Client())
		frame := make([]byte, 30_001)
		frame[0] = 30
		if err := conn.Write(t.Context(), websocket.MessageBinary, frame[:30_000]); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Errorf("a frame of its kind's length: %v", err)
		}
		w, err := conn.Writer(t.Context(), websocket.MessageBinary)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = w.Write(append(frame, make([]byte, 1<<19)...)) }()
		if err := <-got; !errors.Is(err, errLong) {
			t.Errorf("a longer one: %v", err)
		}
		if used, _ := terms.Room.held(); used > 2*30_000 {
			t.Errorf("%d bytes are held", used)
		}
		conn.CloseNow()
		wires.Close()
	})
}

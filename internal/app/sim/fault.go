package sim

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// A FaultKind names a device's misbehaviour.
type FaultKind string

// The faults.
const (
	Vanish  FaultKind = "vanish"  // the device is gone for good
	Drop    FaultKind = "drop"    // the connection breaks; the device reconnects and goes on
	Absent  FaultKind = "absent"  // the device is gone, and comes back for a later round
	Slow    FaultKind = "slow"    // the message goes out Delay later
	Garbage FaultKind = "garbage" // random bytes go out in its place
	Poison  FaultKind = "poison"  // a masked update whose masked values are random goes out (turn 3)
)

// A Fault happens once, just before a device sends the given turn of a round that is
// to make the given version.
type Fault struct {
	Version int // from 1; where a round for it is abandoned, the next one counts as well
	Turn    int // 1..5
	Kind    FaultKind
	Delay   time.Duration // of Slow
}

// errGone is how a faulty device's connection ends.
var errGone = errors.New("sim: connection cut by the script")

// script plays a device's fault on its connections.
type script struct {
	fault  *Fault
	vanish context.CancelFunc // ends the device
	fleet  *clock

	mu   sync.Mutex
	done bool // by mu: the fault has happened
	away int  // by mu: not 0: no connection before a round for this version
}

// clock is the latest version that any device was assigned a round for; absent devices
// come back by it.
type clock struct {
	mu      sync.Mutex
	version int // by mu
}

func (c *clock) see(version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = max(c.version, version)
}

func (c *clock) now() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// mayDial refuses a connection while the device is away.
func (s *script) mayDial() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != 0 && s.fleet.now() < s.away {
		return errGone
	}
	s.away = 0
	return nil
}

// due reports whether a message in a round for a version is the one to fail at, and
// marks the fault as done.
func (s *script) due(m wire.Message, version int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil || s.done || version != s.fault.Version {
		return false
	}
	switch m := m.(type) {
	case *wire.Turn:
		s.done = int(m.Number) == s.fault.Turn
	case *wire.Update:
		s.done = s.fault.Turn == 3
	}
	return s.done
}

// play acts the fault out on a frame about to be written to conn: it returns
// the frame to write, or an error in its place.
func (s *script) play(ctx context.Context, frame []byte, conn edge.Conn, version int) ([]byte, error) {
	switch s.fault.Kind {
	case Vanish:
		s.vanish()
		conn.Close()
		return nil, errGone
	case Absent:
		s.mu.Lock()
		s.away = version + 1
		s.mu.Unlock()
		fallthrough
	case Drop:
		conn.Close()
		return nil, errGone
	case Slow:
		t := time.NewTimer(s.fault.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case Garbage:
		rand.Read(frame)
	case Poison:
		// The vector is at the end of the frame; its head stays.
		rand.Read(frame[len(frame)/2:])
	}
	return frame, nil
}

package relay

import (
	"net/netip"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// A gateway reads on when what it has read is on its way, or the stream is over.
func TestSentWaitsForTheLink(t *testing.T) {
	s := newStream(unlinked(nil), 1, netip.AddrPort{}, downWindow, upWindow)
	s.sent() // nothing was written
	for name, end := range map[string]func(){
		"a message":      func() { s.speak(nil, chunk) },
		"the other end":  func() { s.fail(errEnded) },
		"nobody reading": func() { _, _ = s.take() },
	} {
		s = newStream(unlinked(nil), 1, netip.AddrPort{}, downWindow, upWindow)
		s.inEnded = true
		if _, err := s.Write([]byte("update")); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{}, 1)
		go func() { s.sent(); done <- struct{}{} }()
		select {
		case <-done:
			t.Errorf("%s: returned while something is to be sent", name)
		case <-time.After(10 * time.Millisecond):
		}
		end()
		watchdog.Recv(t, name, done)
	}
}

// Who may send hardly anything, or has more to send than it may, does not wait for others to have
// something to say, and nobody else is told sooner for it.
func TestCreditIsNotGatheredWhereItIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		room, credit, out int
		soon              bool
	}{
		"read, and nothing may come": {0, upWindow, 0, true},
		"read, and more may come":    {downWindow / 2, upWindow, 0, false},
		"written beyond its credit":  {downWindow, 10, 11, true},
		"written within it":          {downWindow, upWindow, mostOut - 1, false},
	} {
		l := unlinked(nil)
		s := newStream(l, 1, netip.AddrPort{}, c.room, c.credit)
		if _, err := s.Write(make([]byte, c.out)); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.grant(downWindow - c.room)
		s.mu.Unlock()
		if !s.ringed || (l.waiting >= flushBytes) != c.soon {
			t.Errorf("%s: waits for %d bytes of others", name, flushBytes-l.waiting)
		}
	}
}

package relay

import (
	"net/netip"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/watchdog"
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

// Who downloads much does not wait for others to have something to say.
func TestMuchCreditIsNotGathered(t *testing.T) {
	l := unlinked(nil)
	s := newStream(l, 1, netip.AddrPort{}, downWindow, upWindow)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grant(downWindow / 2)
	if !s.ringed || l.waiting < plenty {
		t.Errorf("a grant of %d bytes is gathered with less than %d of others", downWindow/2, plenty-l.waiting)
	}
}

package relay

import (
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/watchdog"
)

// A gateway reads on when what it has read is on its way, and hears why it is not.
func TestSentWaitsForTheLink(t *testing.T) {
	s := newStream(unlinked(nil), 1, netip.AddrPort{}, downWindow, upWindow)
	if err := s.sent(); err != nil {
		t.Errorf("nothing was written: %v", err)
	}
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
		done := make(chan error, 1)
		go func() { done <- s.sent() }()
		select {
		case err := <-done:
			t.Errorf("%s: returned %v while something is to be sent", name, err)
		case <-time.After(10 * time.Millisecond):
		}
		end()
		if err := watchdog.Recv(t, name, done); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s = newStream(unlinked(nil), 1, netip.AddrPort{}, downWindow, upWindow)
	_, _ = s.Write([]byte("update"))
	_ = s.SetWriteDeadline(time.Now().Add(-time.Second))
	if err := s.sent(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after its deadline: %v", err)
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

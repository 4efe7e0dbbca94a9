package link

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// TestAttempts: one address enrols, or fails to, so many times in an hour; others, and this
// machine's own, do not suffer for it.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAttempts(0)
		for i := range 300 {
			err := a.Allowed("[2001:db8::1]:99")
			if (err == nil) != (i < 256) {
				t.Fatalf("attempt %d: %v", i, err)
			}
			var told *Refusal
			if i < 256 {
				a.Made("[2001:db8::2]:98") // the same /64
			} else if !errors.As(err, &told) || told.Msg.Code != wire.CodeBusy {
				t.Fatalf("%v", err)
			}
			a.Made("127.0.0.1:5")
		}
		if err := errors.Join(a.Allowed("192.0.2.1:5"), a.Allowed("127.0.0.1:5")); err != nil {
			t.Errorf("others: %v", err)
		}
		time.Sleep(AttemptsPeriod + time.Second)
		if err := a.Allowed("[2001:db8::1]:99"); err != nil {
			t.Errorf("an hour later: %v", err)
		}
	})
}

// TestSlots: no more connections than there may be, none once they are closed, and whoever
// waits for the last is told.
func TestSlots(t *testing.T) {
	s := Slots{Limit: 2}
	for i := range 3 {
		if got := s.Enter(); got != (i < s.Limit) {
			t.Fatalf("of two slots the one of number %d: %v", i, got)
		}
	}
	idle, again := s.Close()
	if again || s.Enter() {
		t.Errorf("closed before: %v, or still open", again)
	}
	s.Leave()
	select {
	case <-idle:
		t.Error("idle with a connection open")
	default:
	}
	s.Leave()
	<-idle
	if idle, again := s.Close(); !again {
		t.Error("closed for the first time twice")
	} else {
		<-idle
	}
}

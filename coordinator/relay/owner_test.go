package relay

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestOwnerHearsNoGateway: an owner says so once no gateway has said anything for two pulses.
func TestOwnerHearsNoGateway(t *testing.T) {
	began := time.Now()
	k := &link{}
	l := &Listener{nc: &nats.Conn{}, links: map[string]*link{"one": k}, heard: began}
	heard := began
	for i := range 20 { // a gateway's pulses
		heard = began.Add(time.Duration(i) * pulse)
		k.heard.Store(heard.UnixNano())
		l.note(heard.Add(time.Second))
		if err := l.Check(heard.Add(pulse)); err != nil {
			t.Fatal(err)
		}
	}
	delete(l.links, "one")
	l.note(heard.Add(alone))
	if err := l.Check(heard.Add(alone - time.Second)); err != nil {
		t.Error(err)
	}
	if err := l.Check(heard.Add(alone)); err == nil || !strings.Contains(err.Error(), "NATS has not been reached for 11s") {
		t.Error(err)
	}
}

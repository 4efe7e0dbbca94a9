package gateways

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// Who reads from a device that stays is told at once that the owner closed its connection, as
// the owner of a TCP connection is.
func TestCloseEndsReads(t *testing.T) {
	b := begin(t)
	l, err := relay.Listen(b.as(t, "owner"), always, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	device, err := net.Dial("tcp", gateway(t, b, "one"))
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	var conn net.Conn
	watchdog.Wait(t, "a connection", func() { conn, err = l.Accept() })
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		read <- err
	}()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-read:
		if err == nil {
			t.Error("something was read")
		}
	case <-time.After(3 * time.Second): // a gateway gives its device five seconds to hang up
		t.Error("it reads still")
	}
}

package server

import (
	"errors"
	"net"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// TestHostileStranger: off loopback a listener is not served for a job that anybody
// may join; with a secret of its own a device needs the token.
func TestHostileStranger(t *testing.T) {
	dir := t.TempDir()
	c, s := serve(t, tinyJob(3), Config{})
	defer c.Close()
	e, err := listen(t, "0.0.0.0:0", dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), e); !errors.Is(err, ErrOpen) {
		t.Errorf("served to everybody: %v", err)
	}
	if err := c.RequireSecret(); err != nil {
		t.Fatal(err)
	}
	token, err := wire.ParseToken(s.Token(e.URL, e.Pin))
	first := token.Secret
	if err := errors.Join(err, s.open(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}), c.RequireSecret()); err != nil || len(first) != 32 {
		t.Errorf("secret of %d bytes, %v", len(first), err)
	}
}

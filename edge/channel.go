package edge

import (
	"errors"
	"fmt"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// ErrRelay reports a third party between this device and the coordinator: the TLS connection does
// not end at the coordinator.
var ErrRelay = errors.New("edge: a third party is between this device and the coordinator")

// secured is a Conn that knows its TLS.
type secured interface {
	// Exporter is the connection's TLS exporter under the label; nil: it has no TLS.
	Exporter(label string) ([]byte, error)
}

// channel is what this device signs of its connection: all that it sees of it.
// Nobody may talk a device out of that whose token pins a certificate, since the
// holder of that certificate sees the connection's TLS itself.
func (c *client) channel(w *wire.Welcome) (kind uint8, exporter []byte, err error) {
	if host == "v8" {
		return wire.ChannelBrowser, nil, nil
	}
	if !w.TLS {
		if len(c.token.Pin) != 0 {
			return 0, nil, fmt.Errorf("%w: it says that it sees no TLS, and the token pins its certificate", ErrRelay)
		}
		return wire.ChannelPlain, nil, nil
	}
	if s, ok := c.conn.(secured); ok {
		exporter, err = s.Exporter(wire.ExporterLabel)
	}
	if err == nil && exporter == nil {
		err = fmt.Errorf("%w: it says that it ends TLS, and this connection has none", ErrRelay)
	}
	return wire.ChannelTLS, exporter, err
}

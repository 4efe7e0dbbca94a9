package sim

import (
	"context"
	"sync/atomic"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// conn is a device's connection under a script and a meter. version is shared by
// a device's connections, one after the other.
type conn struct {
	edge.Conn
	script  *script
	meter   *meter
	version *atomic.Int64 // that the assigned round is to make
}

func (c *conn) Read(ctx context.Context) ([]byte, error) {
	frame, err := c.Conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	// What cannot be decoded is the device's to judge.
	if m, err := wire.Decode(frame, wire.FromCoordinator); err == nil {
		c.meter.frame(m, frame)
		if a, ok := m.(*wire.Assignment); ok {
			if plan, err := wire.ParsePlan(a.Plan); err == nil {
				c.version.Store(int64(plan.Version) + 1)
				c.script.fleet.see(int(plan.Version) + 1)
			}
		}
	}
	return frame, nil
}

func (c *conn) Write(ctx context.Context, frame []byte) error {
	m, err := wire.Decode(frame, wire.FromDevice)
	if err != nil {
		return err
	}
	if version := int(c.version.Load()); c.script.due(m, version) {
		if frame, err = c.script.play(ctx, frame, c.Conn, version); err != nil {
			return err
		}
	}
	c.meter.frame(m, frame)
	return c.Conn.Write(ctx, frame)
}

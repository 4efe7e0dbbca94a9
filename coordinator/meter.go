package coordinator

import "sync/atomic"

// Meter counts what crosses the sockets, and is told by whoever serves them. Its
// methods are safe from any goroutine.
type Meter struct {
	up, down, onceUp, onceDown, refused atomic.Int64
}

// Up counts bytes received, Down bytes sent.
func (m *Meter) Up(n int)   { m.up.Add(int64(n)) }
func (m *Meter) Down(n int) { m.down.Add(int64(n)) }

// Once says that of the bytes counted so many were for what a device fetches once:
// the base, programs, the job, the page.
func (m *Meter) Once(up, down int64) {
	m.onceUp.Add(up)
	m.onceDown.Add(down)
}

// Refuse counts a connection or a session that was refused.
func (m *Meter) Refuse() { m.refused.Add(1) }

func (m *Meter) traffic() Traffic { return Traffic{m.up.Load(), m.down.Load()} }

// Meter is where the bytes of sockets are counted.
func (c *Coordinator) Meter() *Meter { return &c.traffic }

package coordinator

import "sync/atomic"

// A Part is what bytes cross a socket for.
type Part int

// The parts. What a device fetches once stands first.
const (
	PartNone     Part = iota // handshakes, pings, status, and what frames are wrapped in
	PartPage                 // pages, the browser's client, what the job is
	PartBase                 // the base's weights
	PartPrograms             // training programs, one a rank and host
	PartModel                // the finished model, at the job's end
	PartSlices               // adapter slices and differences, every round
	PartTurns                // assignments and secure aggregation's turns
	PartUpdates              // masked updates
	parts
)

// Once reports whether a device fetches it once and not in every round.
func (p Part) Once() bool { return p >= PartPage && p <= PartModel }

// Meter counts what crosses the sockets, and is told by whoever serves them. Its
// methods are safe from any goroutine.
type Meter struct {
	up, down, refused atomic.Int64
	of                [parts]struct{ up, down atomic.Int64 }
}

// Up counts bytes received, Down bytes sent.
func (m *Meter) Up(n int)   { m.up.Add(int64(n)) }
func (m *Meter) Down(n int) { m.down.Add(int64(n)) }

// For says that of the bytes counted so many were for a part.
func (m *Meter) For(p Part, up, down int64) {
	m.of[p].up.Add(up)
	m.of[p].down.Add(down)
}

// Refuse counts a connection or a session that was refused.
func (m *Meter) Refuse() { m.refused.Add(1) }

// parts are the figures so far; what no part was told for is Rest.
func (m *Meter) parts() Parts {
	at := func(p Part) Bytes { return Bytes{m.of[p].up.Load(), m.of[p].down.Load()} }
	p := Parts{Page: at(PartPage), Base: at(PartBase), Programs: at(PartPrograms), Model: at(PartModel),
		Slices: at(PartSlices), Turns: at(PartTurns), Updates: at(PartUpdates)}
	// Loaded last: a byte is counted before it is said what it was for.
	all, known := Bytes{m.up.Load(), m.down.Load()}, p.sum()
	p.Rest = Bytes{max(0, all.Up-known.Up), max(0, all.Down-known.Down)}
	return p
}

// Meter is where the bytes of sockets are counted.
func (c *Coordinator) Meter() *Meter { return &c.traffic }

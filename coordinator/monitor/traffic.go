package monitor

import "sync/atomic"

// A Part is a purpose for which bytes cross a socket.
type Part int

// The parts. What a device fetches once is first.
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

// Once reports whether a device fetches the part once, and not in every round.
func (p Part) Once() bool { return p >= PartPage && p <= PartModel }

// Meter counts the bytes that cross the sockets, reported by anyone who serves them. Its methods are
// safe for concurrent use.
type Meter struct {
	up, down, refused atomic.Int64
	of                [parts]struct{ up, down atomic.Int64 }
}

// Up counts bytes received.
func (m *Meter) Up(n int) { m.up.Add(int64(n)) }

// Down counts bytes sent.
func (m *Meter) Down(n int) { m.down.Add(int64(n)) }

// For records the purpose of a part of the counted bytes.
func (m *Meter) For(p Part, up, down int64) {
	m.of[p].up.Add(up)
	m.of[p].down.Add(down)
}

// Refuse counts a connection or a session that was refused.
func (m *Meter) Refuse() { m.refused.Add(1) }

// Refused is the number of connections and sessions that were refused.
func (m *Meter) Refused() int64 { return m.refused.Load() }

// parts returns the figures so far. Rest counts the bytes that no part claims.
func (m *Meter) parts() Parts {
	at := func(p Part) Bytes { return Bytes{m.of[p].up.Load(), m.of[p].down.Load()} }
	p := Parts{Page: at(PartPage), Base: at(PartBase), Programs: at(PartPrograms), Model: at(PartModel),
		Slices: at(PartSlices), Turns: at(PartTurns), Updates: at(PartUpdates)}
	// The totals are loaded after the parts: a byte enters its total before its part, so Rest is not negative.
	all, known := Bytes{m.up.Load(), m.down.Load()}, p.Sum()
	p.Rest = Bytes{max(0, all.Up-known.Up), max(0, all.Down-known.Down)}
	return p
}

// Traffic is what crossed the sockets, in bytes, up being towards the coordinator.
type Traffic struct {
	BytesUp   int64 `json:"bytes_up"`
	BytesDown int64 `json:"bytes_down"`
}

// Bytes went up, towards the coordinator, and down.
type Bytes struct {
	Up   int64 `json:"up"`
	Down int64 `json:"down"`
}

// Parts divides Traffic by purpose. What a device fetches is counted with the HTTP and TLS around
// it, messages by themselves; Rest is everything else.
type Parts struct {
	Page     Bytes `json:"page"`     // once: what the job is, and a browser's pages and client
	Base     Bytes `json:"base"`     // once a device: the base's weights
	Programs Bytes `json:"programs"` // once a device and rank: training programs
	Model    Bytes `json:"model"`    // once a browser, at the end
	Slices   Bytes `json:"slices"`   // every round: the adapter's slice, or a difference to one
	Turns    Bytes `json:"turns"`    // every round: assignments, secure aggregation's turns
	Updates  Bytes `json:"updates"`  // every round: masked updates
	Rest     Bytes `json:"rest"`     // handshakes, pings, status, what frames are wrapped in
}

// partNames are each's names, as in JSON.
var partNames = []string{"page", "base", "programs", "model", "slices", "turns", "updates", "rest"}

func (p *Parts) each() []*Bytes {
	return []*Bytes{&p.Page, &p.Base, &p.Programs, &p.Model, &p.Slices, &p.Turns, &p.Updates, &p.Rest}
}

// plus returns the sum of p and another.
func (p Parts) plus(q Parts) Parts {
	for i, b := range q.each() {
		at := p.each()[i]
		at.Up, at.Down = at.Up+b.Up, at.Down+b.Down
	}
	return p
}

// Sum is the sum of all parts.
func (p Parts) Sum() (all Bytes) {
	for _, b := range p.each() {
		all.Up, all.Down = all.Up+b.Up, all.Down+b.Down
	}
	return all
}

// traffic is what the parts are of: bytes go on while somebody reads the meter, so that a
// total that is read by itself is another moment's.
func (p Parts) traffic() Traffic {
	all := p.Sum()
	return Traffic{BytesUp: all.Up, BytesDown: all.Down}
}

// Once is the sum of the parts that a device fetches once.
func (p Parts) Once() Bytes {
	return Parts{Page: p.Page, Base: p.Base, Programs: p.Programs, Model: p.Model}.Sum()
}

// since returns the traffic after began.
func (p Parts) since(began Parts) Parts {
	for i, b := range began.each() {
		at := p.each()[i]
		// A request enters its part when it is answered. Bytes of one that was under
		// way are in began's rest, and in a part now.
		at.Up, at.Down = max(0, at.Up-b.Up), max(0, at.Down-b.Down)
	}
	return p
}

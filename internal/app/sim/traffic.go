package sim

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Traffic is what crossed all devices' sockets, in bytes. Up is towards the
// coordinator. TCP's and IP's own headers are not seen at the socket and not
// counted.
type Traffic struct {
	Up, Down int64
	// OnceUp and OnceDown are for what a device fetches once, not in every round:
	// the base, programs, the job.
	OnceUp, OnceDown int64
	DeviceRounds     int // rounds that a device was assigned, over all devices
	// PerDeviceRound is everything but Base and Programs, divided by DeviceRounds.
	PerDeviceRound PerDeviceRound
	Breakdown      Breakdown
}

// PerDeviceRound is bytes of one device in one round, on average.
type PerDeviceRound struct{ Up, Down float64 }

// Breakdown divides the bytes by purpose. The parts add up to Up + Down.
type Breakdown struct {
	Vector     int64 // masked updates, up: packed ring elements and nothing else
	Keys       int64 // turns 1, 2, 4 and 5, both ways: keys, shares, sets, signatures
	Assignment int64 // plans
	Session    int64 // joining, waiting, outcomes, errors
	Framing    int64 // kind bytes and CBOR around vectors and turns
	Slices     int64 // adapter slices, HTTP included
	Programs   int64 // training programs, HTTP included: once a device and rank
	Base       int64 // base weights, HTTP included: once a device
	WebSocket  int64 // HTTP upgrade, frame headers, masks, pings
}

func (b *Breakdown) add(o Breakdown) {
	b.Vector += o.Vector
	b.Keys += o.Keys
	b.Assignment += o.Assignment
	b.Session += o.Session
	b.Framing += o.Framing
	b.Slices += o.Slices
	b.Programs += o.Programs
	b.Base += o.Base
	b.WebSocket += o.WebSocket
}

// meter counts one device's bytes.
type meter struct {
	socket Count // of WebSocket connections
	blobs  Count // of connections for blobs

	mu       sync.Mutex
	parts    Breakdown           // by mu
	onceUp   int64               // by mu: bytes up for base and programs
	onceDown int64               // by mu
	job      int64               // by mu: bytes of asking what the job is, part of Session
	frames   int64               // by mu: bytes of frames, both ways
	rounds   map[uint64]struct{} // by mu: rounds assigned
	kinds    map[string]blobKind // by mu: what a blob is, by path
}

// Count returns the bytes that connections carried, as seen at sockets.
type Count struct{ Up, Down atomic.Int64 }

type blobKind uint8

const (
	blobSlice blobKind = iota
	blobProgram
	blobBase
	blobJob // what the job is, asked for before enrolling
)

// Dialer opens connections that count into c.
func (c *Count) Dialer() edge.NetDialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn, count: c}, nil
	}
}

type countedConn struct {
	net.Conn
	count *Count
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.count.Down.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.count.Up.Add(int64(n))
	return n, err
}

// frame accounts for one frame and remembers what blobs it names.
func (m *meter) frame(m2 wire.Message, frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := int64(len(frame))
	m.frames += size
	switch msg := m2.(type) {
	case *wire.Update:
		m.parts.Vector += int64(len(msg.Data))
		m.parts.Framing += size - int64(len(msg.Data))
	case *wire.Turn:
		m.parts.Keys += int64(len(msg.Payload))
		m.parts.Framing += size - int64(len(msg.Payload))
	case *wire.Assignment:
		m.parts.Assignment += size
		m.assigned(msg)
	default:
		m.parts.Session += size
	}
}

// assigned is called with mu held.
func (m *meter) assigned(a *wire.Assignment) {
	plan, err := wire.ParsePlan(a.Plan)
	if err != nil {
		return
	}
	m.rounds[plan.Round] = struct{}{}
	for _, p := range plan.Programs {
		m.kinds[blobPath(p.Blob)] = blobProgram
	}
}

func blobPath(b wire.Blob) string { return wire.Token{}.BlobURL(b.SHA256) }

// blobClient fetches blobs over counted connections and notes what each was
// for. A device fetches one blob at a time.
func (m *meter) blobClient(token string) (*http.Client, error) {
	client, err := edge.NewHTTPClient(token, m.blobs.Dialer())
	if err != nil {
		return nil, err
	}
	client.Transport = &meteredTransport{meter: m, next: client.Transport}
	return client, nil
}

type meteredTransport struct {
	meter *meter
	next  http.RoundTripper
}

// CloseIdleConnections lets http.Client reach the transport below.
func (t *meteredTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *meteredTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	up, down := t.meter.blobs.Up.Load(), t.meter.blobs.Down.Load()
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	path := r.URL.Path
	resp.Body = &meteredBody{ReadCloser: resp.Body, end: func() {
		t.meter.fetched(path, t.meter.blobs.Up.Load()-up, t.meter.blobs.Down.Load()-down)
	}}
	return resp, nil
}

// meteredBody calls end once, when the body is closed.
type meteredBody struct {
	io.ReadCloser
	once sync.Once
	end  func()
}

func (b *meteredBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.end)
	return err
}

func (m *meter) fetched(path string, up, down int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind := m.kinds[strings.ToLower(path)]
	switch {
	case strings.HasPrefix(path, "/v1/job"):
		kind = blobJob
	case len(m.rounds) == 0: // before its first round a device fetches the base alone
		kind = blobBase
		m.kinds[strings.ToLower(path)] = blobBase
	}
	switch kind {
	case blobJob:
		m.parts.Session += up + down
		m.job += up + down // of joining, as the job in Enrolled was
	case blobBase:
		m.parts.Base += up + down
		m.onceUp, m.onceDown = m.onceUp+up, m.onceDown+down
	case blobProgram:
		m.parts.Programs += up + down
		m.onceUp, m.onceDown = m.onceUp+up, m.onceDown+down
	default:
		m.parts.Slices += up + down
	}
}

// addTo sums a device's counts into the fleet's. All its connections have ended.
func (m *meter) addTo(t *Traffic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parts := m.parts
	parts.WebSocket = m.socket.Up.Load() + m.socket.Down.Load() - m.frames
	// What blob connections carried beyond any finished request, such as one
	// that was cut, is the slices': it came in a round.
	parts.Slices += m.blobs.Up.Load() + m.blobs.Down.Load() - parts.Base - parts.Programs - parts.Slices - m.job
	t.Breakdown.add(parts)
	t.Up += m.socket.Up.Load() + m.blobs.Up.Load()
	t.Down += m.socket.Down.Load() + m.blobs.Down.Load()
	t.DeviceRounds += len(m.rounds)
	t.OnceUp += m.onceUp
	t.OnceDown += m.onceDown
}

// total closes the fleet's account.
func total(meters []*meter) Traffic {
	var t Traffic
	for _, m := range meters {
		m.addTo(&t)
	}
	if n := float64(t.DeviceRounds); n > 0 {
		t.PerDeviceRound = PerDeviceRound{Up: float64(t.Up-t.OnceUp) / n, Down: float64(t.Down-t.OnceDown) / n}
	}
	return t
}

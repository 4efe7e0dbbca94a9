//go:build !js

package edge

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// host names the code shape of programs that this build runs best.
const host = "wazero"

// HTTPClient fetches blobs.
type HTTPClient = http.Client

const (
	pingEvery   = 30 * time.Second // longer than the coordinator's: its pings make ours idle
	writeWithin = 2 * time.Minute  // for one frame
)

// errText is a text message where only binary ones are sent.
var errText = errors.New("edge: coordinator sent a text message")

// socket is a Conn over a WebSocket.
type socket struct {
	ws   *websocket.Conn
	busy atomic.Int64       // when something was last heard or sent, in nanoseconds
	stop context.CancelFunc // ends the pinging goroutine
	done chan struct{}      // closed when it has ended
	tls  *tls.ConnectionState
}

// Exporter returns the exporter of the connection's TLS; nil if it has none.
func (s *socket) Exporter(label string) ([]byte, error) {
	if s.tls == nil {
		return nil, nil
	}
	return s.tls.ExportKeyingMaterial(label, nil, 32)
}

// start begins to carry frames over a connection.
func (s *socket) start(ws *websocket.Conn) {
	ws.SetReadLimit(wire.MaxFrame)
	ctx, stop := context.WithCancel(context.Background())
	s.ws, s.stop, s.done = ws, stop, make(chan struct{})
	s.isBusy()
	go s.ping(ctx)
}

func (s *socket) isBusy() { s.busy.Store(time.Now().UnixNano()) }

// ping notices a dead connection: where nothing was heard for pingEvery, not even a
// ping of the coordinator's, and nothing was sent, it asks. A peer that answers no ping
// within the next period is gone.
//
// It does not ask beside an upload or the peer's own ping: a ping or its answer has 5
// seconds in the library, which it may spend behind a large frame of ours on a slow
// line, or, where both ask at once and neither side's line has room, for each other.
func (s *socket) ping(ctx context.Context) {
	defer close(s.done)
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			if now.UnixNano()-s.busy.Load() < int64(pingEvery) {
				continue
			}
			ctx, cancel := context.WithTimeout(ctx, pingEvery)
			err := s.ws.Ping(ctx)
			cancel()
			if err != nil {
				s.ws.CloseNow()
				return
			}
		}
	}
}

func (s *socket) Read(ctx context.Context) ([]byte, error) {
	kind, frame, err := s.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageBinary {
		return nil, errText
	}
	s.isBusy()
	return frame, nil
}

func (s *socket) Write(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	s.isBusy()
	defer s.isBusy()
	return s.ws.Write(ctx, websocket.MessageBinary, frame)
}

func (s *socket) Close() error {
	s.stop()
	err := s.ws.CloseNow()
	<-s.done
	return err
}

// A NetDialer opens a transport connection, as net.Dialer.DialContext does.
type NetDialer func(ctx context.Context, network, address string) (net.Conn, error)

// DialSocket connects to the token's coordinator by WebSocket: what Config.Dial
// does by default. netDial opens the connection below it; nil means the
// system's.
func DialSocket(ctx context.Context, token string, netDial NetDialer) (Conn, error) {
	t, err := wire.ParseToken(token)
	if err != nil {
		return nil, fmt.Errorf("edge: token: %w", err)
	}
	s := new(socket)
	options := &websocket.DialOptions{
		HTTPClient: newHTTPClient(t, netDial), CompressionMode: websocket.CompressionDisabled,
		OnPingReceived: func(context.Context, []byte) (answer bool) { s.isBusy(); return true },
	}
	ws, resp, err := websocket.Dial(ctx, t.Endpoint(), options)
	if err != nil {
		return nil, dialError(t, resp, err)
	}
	s.tls = resp.TLS
	s.start(ws)
	return s, nil
}

// blobIdle is how long a connection waits for the next blob to be asked for.
const blobIdle = 3 * time.Second

// NewHTTPClient returns the client that blobs are fetched with by default. It trusts exactly the
// pinned certificate if the token has a pin, and the system's roots otherwise. A nil netDial means
// the system's dialer.
func NewHTTPClient(token string, netDial NetDialer) (*http.Client, error) {
	t, err := wire.ParseToken(token)
	if err != nil {
		return nil, fmt.Errorf("edge: token: %w", err)
	}
	return newHTTPClient(t, netDial), nil
}

// stay follows no redirect: it could lead to a host that the token does not
// name, or the enrolment to one that speaks no TLS.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func newHTTPClient(t wire.Token, netDial NetDialer) *http.Client {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	if netDial != nil {
		tr.DialContext = netDial
	}
	// Blobs are fetched in bursts, a round's at once: between them a device holds one
	// connection, its session's, and not two.
	tr.IdleConnTimeout = blobIdle
	tr.DisableCompression = true // blobs are hashed as stored; Range offsets count their bytes
	if len(t.Pin) != 0 {
		pin := [32]byte(t.Pin)
		tr.TLSClientConfig = &tls.Config{
			MinVersion: tls.VersionTLS13,
			// The pin replaces the chain: names and expiry say nothing about a
			// self-signed certificate whose hash is known.
			InsecureSkipVerify: true,
			VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
				if len(raw) == 0 || sha256.Sum256(raw[0]) != pin {
					return ErrPin
				}
				return nil
			},
		}
	}
	return &http.Client{Transport: tr, CheckRedirect: stay}
}

// blobClient asks for blobs.
type blobClient struct{ http *http.Client }

// newBlobClient uses given where there is one. done ends what was started.
func newBlobClient(t wire.Token, given *http.Client) (c blobClient, done func()) {
	if given != nil {
		return blobClient{given}, func() {}
	}
	own := newHTTPClient(t, nil)
	return blobClient{own}, own.CloseIdleConnections
}

// open asks for a blob from a byte on, if it still has the tag. The caller
// closes the body.
func (c blobClient) open(ctx context.Context, url string, from uint64, etag string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		req.Header.Set("If-Range", etag)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	return &answer{resp.StatusCode, resp.Header.Get("Content-Range"), resp.Body}, nil
}

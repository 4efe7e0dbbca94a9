package server

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// A coordinator whose operator wants other people's devices relays every frame
// of one to an honest coordinator elsewhere, to enrol it there: a signature made
// for one connection is good at no other.
func TestHostileRelay(t *testing.T) {
	dir := t.TempDir()
	c, honest := serve(t, tinyJob(3), Config{})
	e, err := listen(t, "127.0.0.1:0", dir, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- honest.Serve(ctx, e) }()
	defer func() {
		cancel()
		if err := errors.Join(watchdog.Recv(t, "the listener's end", served), c.Close()); err != nil {
			t.Error(err)
		}
	}()
	for name, lie := range map[string]struct {
		secure bool
		lie    func(*wire.Welcome)
		want   error // nil: the honest coordinator refuses
	}{
		"every frame as it is":                       {true, func(*wire.Welcome) {}, nil},
		"says that it sees no TLS":                   {true, func(w *wire.Welcome) { w.TLS = false }, edge.ErrRelay},
		"speaks no TLS, says that it sees none":      {false, func(w *wire.Welcome) { w.TLS = false }, nil},
		"speaks no TLS, says that it ends it itself": {false, func(*wire.Welcome) {}, edge.ErrRelay},
	} {
		t.Run(name, func(t *testing.T) {
			catcher := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != wire.Path {
					http.NotFound(w, r)
					return
				}
				to, err := wire.ParseToken(honest.Token(e.URL, e.Pin))
				if err != nil {
					t.Error(err)
				}
				relay(w, r, to, lie.lie)
			}))
			var pin []byte
			if lie.secure {
				catcher.StartTLS()
				sum := sha256.Sum256(catcher.Certificate().Raw)
				pin = sum[:]
			} else {
				catcher.Start()
			}
			defer catcher.Close()
			caught := wire.Token{URL: catcher.URL, Pin: pin} // the catcher hands out its own tokens
			key, err := edge.NewIdentity()
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				done <- edge.Run(t.Context(), edge.Config{Token: caught.String(), Identity: key, Data: edge.Examples(&dataset.Set{
					Labels: []string{"a", "b"}, Examples: []dataset.Example{{Text: "x"}}})})
			}()
			got := watchdog.Recv(t, "the device's end", done)
			refused := new(edge.RefusedError)
			if lie.want == nil && (!errors.As(got, &refused) || refused.Code != wire.CodeIdentity) || lie.want != nil && !errors.Is(got, lie.want) {
				t.Errorf("the device ended with %v", got)
			}
			if n := c.Status().Enrolled; n != 0 {
				t.Errorf("%d devices are enrolled", n)
			}
		})
	}
}

// relay passes frames between a device and the coordinator of the token, and
// changes the welcome on the way.
func relay(w http.ResponseWriter, r *http.Request, to wire.Token, lie func(*wire.Welcome)) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	device, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer device.CloseNow()
	there := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer there.CloseIdleConnections()
	honest, _, err := websocket.Dial(ctx, to.Endpoint(), &websocket.DialOptions{HTTPClient: there})
	if err != nil {
		return
	}
	defer honest.CloseNow()
	go func() {
		defer cancel()
		for {
			kind, b, err := device.Read(ctx)
			if err != nil || honest.Write(ctx, kind, b) != nil {
				return
			}
		}
	}()
	for {
		kind, b, err := honest.Read(ctx)
		if err != nil {
			return
		}
		if m, err := wire.Decode(b, wire.FromCoordinator); err == nil {
			if welcome, ok := m.(*wire.Welcome); ok {
				lie(welcome)
				if b, err = wire.Append(nil, welcome); err != nil {
					return
				}
			}
		}
		if device.Write(ctx, kind, b) != nil {
			return
		}
	}
}

//go:build !js

package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// reach joins an address that has no coordinator, for at most a while.
func reach(t *testing.T, token wire.Token, dial NetDialer) (tries int, err error) {
	t.Helper()
	key, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	backoffs := 0
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = Run(ctx, Config{
		Token: token.String(), Identity: key, Data: Examples(examples(4)), BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond,
		HTTP: newHTTPClient(token, dial),
		Dial: func(ctx context.Context, token string) (Conn, error) { return DialSocket(ctx, token, dial) },
		Progress: func(e Event) {
			if e.State == Backoff {
				if backoffs++; backoffs == 5 {
					cancel()
				}
			}
		},
	})
	return backoffs, err
}

// What trying again cannot fix ends a device that never got in, in words; what
// may pass does not.
func TestUnreachableEnds(t *testing.T) {
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	for _, c := range []struct {
		code int
		want string // "": it goes on
	}{{404, "answers 404 Not Found: it is not a Starling coordinator"}, {200, "answers 200 OK"}, {403, "answers 403"}, {502, ""}, {503, ""}, {429, ""}} {
		s := httptest.NewServer(status(c.code))
		backoffs, err := reach(t, wire.Token{URL: s.URL}, nil)
		s.Close()
		if c.want == "" && (backoffs != 5 || !errors.Is(err, context.Canceled)) {
			t.Errorf("%d: %v after %d tries", c.code, err, backoffs)
		} else if c.want != "" && (!errors.Is(err, ErrUnreachable) || !strings.Contains(Explain(err), c.want) || backoffs != 0) {
			t.Errorf("%d: %v after %d tries, want %q", c.code, err, backoffs, c.want)
		}
	}
	s := httptest.NewTLSServer(status(404))
	defer s.Close()
	if n, err := reach(t, wire.Token{URL: s.URL}, nil); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "certificate is not trusted") || n != 0 {
		t.Errorf("an unknown certificate: %v", err)
	}
	if n, err := reach(t, wire.Token{URL: s.URL, Pin: make([]byte, 32)}, nil); !errors.Is(err, ErrPin) || n != 0 {
		t.Errorf("another certificate than the pinned one: %v", err)
	}
	plain := httptest.NewServer(status(404))
	defer plain.Close()
	if n, err := reach(t, wire.Token{URL: strings.Replace(plain.URL, "http", "https", 1)}, nil); !errors.Is(err, ErrUnreachable) || n != 0 {
		t.Errorf("TLS to a plain server: %v", err)
	}
	nobody := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}
	}
	if n, err := reach(t, wire.Token{URL: "https://x.example"}, nobody); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "there is no such host") || n != 0 {
		t.Errorf("a name that does not exist: %v", err)
	}
	var tries atomic.Int32
	refused := func(context.Context, string, string) (net.Conn, error) {
		tries.Add(1)
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	if n, err := reach(t, wire.Token{URL: "https://x.example"}, refused); n != 5 || !errors.Is(err, context.Canceled) {
		t.Errorf("a refused connection: %v after %d tries", err, n)
	}
	if why := permanent(&tls.CertificateVerificationError{Err: x509.HostnameError{}}); why == "" {
		t.Error("a certificate of another host may pass")
	}
}

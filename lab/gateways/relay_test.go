package gateways

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

const config = "../../deploy/nats/nats.conf"

func begin(t *testing.T) *Broker {
	t.Helper()
	b, err := Start(t.TempDir(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b
}

// as is a connection to the broker under a name.
func (b *Broker) as(t *testing.T, name string) *nats.Conn {
	t.Helper()
	nc, err := relay.Connect(b.Access(name), name, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// owned serves what gateways pass on, with TLS, until the function that it returns is called.
func owned(t *testing.T, b *Broker, owns func() bool, h http.Handler) (end func()) {
	t.Helper()
	l, err := relay.Listen(b.as(t, "owner"), owns, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := server.Pinned(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(server.On(l, cert).Listener) })
	end = sync.OnceFunc(func() { srv.Close(); wg.Wait() })
	t.Cleanup(end)
	return end
}

// gateway runs one of that name, and says where it listens.
func gateway(t *testing.T, b *Broker, name string) string {
	t.Helper()
	g, err := relay.NewGateway(b.as(t, name), name, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Follow(ctx) })
	wg.Go(func() { _ = g.Serve(ctx, l) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return l.Addr().String()
}

func always() bool { return true }

// device is a client that trusts any certificate, and keeps no connection.
func device(t *testing.T) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

func get(t *testing.T, c *http.Client, address string) (string, error) {
	req, err := http.NewRequestWithContext(watchdog.Context(t), http.MethodGet, "https://"+address, nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// Bytes come through whole, both ways and many connections at a time, by several gateways; the
// owner sees where each comes from.
func TestBytesComeThrough(t *testing.T) {
	b := begin(t)
	owned(t, b, always, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.Copy(io.MultiWriter(h, w), r.Body)
		if err != nil {
			t.Error(err)
		}
		if host, _, _ := net.SplitHostPort(r.RemoteAddr); host != "127.0.0.1" {
			t.Errorf("from %s", r.RemoteAddr)
		}
		fmt.Fprintf(w, "%d %x", n, h.Sum(nil))
	}))
	var at []string
	for _, name := range []string{"one", "two", "three"} {
		at = append(at, gateway(t, b, name))
	}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			rng := rand.NewChaCha8([32]byte{byte(i)})
			sent := make([]byte, rand.New(rng).IntN(3<<20))
			_, _ = rng.Read(sent)
			req, err := http.NewRequestWithContext(watchdog.Context(t), http.MethodPost, "https://"+at[i%len(at)], bytes.NewReader(sent))
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := device(t).Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			want := append(bytes.Clone(sent), fmt.Appendf(nil, "%d %x", len(sent), sha256.Sum256(sent))...)
			if err != nil || !bytes.Equal(body, want) {
				t.Errorf("%d bytes sent, %d came back, %v", len(sent), len(body), err)
			}
		})
	}
	wg.Wait()
}

// A read's deadline ends the read and nothing else, with TLS, too: a server that takes a
// connection over for a WebSocket ends its own reading by one.
func TestTakenOver(t *testing.T) {
	b := begin(t)
	owned(t, b, always, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(20 * time.Millisecond) // the server reads meanwhile
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "yours\n")
		line, err := rw.ReadString('\n')
		if _, err := io.WriteString(conn, line); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	at := gateway(t, b, "one")
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(watchdog.Context(t), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if line, err := in.ReadString('\n'); line != "yours\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = io.WriteString(conn, "mine\n")
	if line, err := in.ReadString('\n'); line != "mine\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// A device that reads nothing holds up no other one of its gateway.
func TestASlowDeviceHoldsNobodyUp(t *testing.T) {
	b := begin(t)
	stuck, ended := make(chan struct{}, 16), make(chan struct{})
	owned(t, b, always, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/much" {
			part := make([]byte, 1<<20)
			for range 16 {
				if _, err := w.Write(part); err != nil {
					return
				}
				select {
				case stuck <- struct{}{}:
				case <-ended:
				}
			}
			return
		}
		fmt.Fprint(w, "here")
	}))
	at := gateway(t, b, "one")
	for range 8 {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(watchdog.Context(t), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, "GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 8 { // all are answered, and none is read
		watchdog.Recv(t, "an answer that begins", stuck)
	}
	for range 20 {
		if body, err := get(t, device(t), at); err != nil || body != "here" {
			t.Fatalf("beside devices that read nothing: %q, %v", body, err)
		}
	}
	close(ended)
}

// A connection that comes while no owner is there waits for one. Of two, the one that was heard
// last gets it, and one that it has replaced does not come back.
func TestOwnersReplaceOneAnother(t *testing.T) {
	b := begin(t)
	say := func(what string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, what) })
	}
	at := gateway(t, b, "one")
	type answer struct {
		body string
		err  error
	}
	came := make(chan answer, 1)
	go func() {
		body, err := get(t, device(t), at)
		came <- answer{body, err}
	}()
	endFirst := owned(t, b, always, say("first"))
	if a := watchdog.Recv(t, "an answer", came); a.body != "first" || a.err != nil {
		t.Fatalf("%+v", a)
	}
	until := func(want string) {
		t.Helper()
		for {
			body, err := get(t, device(t), at)
			if body == want {
				return
			}
			if watchdog.Context(t).Err() != nil {
				t.Fatalf("%q, %v; want %s", body, err, want)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	endSecond := owned(t, b, always, say("second"))
	until("second")
	time.Sleep(3 * time.Second) // the first one goes on saying that it is there
	until("second")
	endFirst()
	endSecond()
	owned(t, b, func() bool { return false }, say("not sure"))
	owned(t, b, always, say("third"))
	until("third")
}

// Where NATS is restarted, connections that came meanwhile are served.
func TestNATSIsRestarted(t *testing.T) {
	b := begin(t)
	owned(t, b, always, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	at := gateway(t, b, "one")
	for i := range 3 {
		if i > 0 {
			if err := b.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		for {
			body, err := get(t, device(t), at)
			if body == "here" {
				break
			}
			if watchdog.Context(t).Err() != nil {
				t.Fatalf("after %d restarts: %q, %v", i, body, err)
			}
		}
	}
}

// TestPermissions: what the configuration lets a gateway do is its own devices' bytes.
func TestPermissions(t *testing.T) {
	b := begin(t)
	refused := make(chan error, 8)
	nc, err := nats.Connect(b.Access("one").URL, nats.RootCAs(b.Access("one").CA),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for _, subject := range []string{"starling.owner", "starling.open.two.x", "starling.up.two.x.y", "starling.down.one.x", "starling.masks", "starling.sums.x", "other"} {
		if err := nc.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		if err := watchdog.Recv(t, "the refusal of "+subject, refused); !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
			t.Errorf("publishing %s: %v", subject, err)
		}
	}
	for _, subject := range []string{">", "starling.>", "starling.open.>", "starling.up.one.>", "starling.down.two.>", "starling.down.>", "starling.masks", "starling.sums.>"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		if err := watchdog.Recv(t, "the refusal of "+subject, refused); !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
			t.Errorf("hearing %s: %v", subject, err)
		}
	}
	if _, err := nats.Connect(strings.Replace(b.Access("one").URL, "one:", "two:", 1), nats.RootCAs(b.Access("one").CA)); err == nil {
		t.Error("a gateway's password is good for another one")
	}
}

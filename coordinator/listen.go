package coordinator

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/internal/durable"
)

// ErrPlain is a plain listener on an address that others can reach.
var ErrPlain = errors.New("coordinator: without TLS only loopback addresses are served")

// Endpoint is a bound listener and how devices reach it.
type Endpoint struct {
	Listener net.Listener
	URL      string // http://host:port or https://host:port
	Pin      []byte // SHA-256 of the certificate; nil without TLS

	counter *countingListener
}

// Listen binds addr. With TLS it shows a self-signed certificate that is kept in
// dir and pinned by the join token; without, addr must be a loopback address.
func Listen(addr, dir string, secure bool) (*Endpoint, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("coordinator: address %q: %w", addr, err)
	}
	if !secure {
		ip := net.ParseIP(host)
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("%w, not %q", ErrPlain, addr)
		}
	}
	var cert tls.Certificate
	if secure {
		if cert, err = certificate(dir); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	counter := &countingListener{Listener: ln}
	e := &Endpoint{Listener: counter, URL: "http://" + ln.Addr().String(), counter: counter}
	if secure {
		// HTTP/1.1 only: WebSocket needs it.
		e.Listener = tls.NewListener(counter, &tls.Config{
			Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		})
		e.URL = "https://" + ln.Addr().String()
		sum := sha256.Sum256(cert.Certificate[0])
		e.Pin = sum[:]
	}
	return e, nil
}

// certificate loads the self-signed certificate of dir, or makes it.
func certificate(dir string) (tls.Certificate, error) {
	path := filepath.Join(dir, "tls.pem")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = createCertificate(path)
	}
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("coordinator: certificate: %w", err)
	}
	cert, err := tls.X509KeyPair(b, b)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("coordinator: certificate %s: %w", path, err)
	}
	return cert, nil
}

// createCertificate makes a certificate and keeps it. Its pin is in tokens that
// were handed out: it must outlive a power cut, and of two processes that start
// at once both must show the same.
func createCertificate(path string) ([]byte, error) {
	b, err := selfSigned()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := durable.Create(path, b, 0o600); errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path)
	} else if err != nil {
		return nil, err
	}
	return b, nil
}

// selfSigned makes a P-256 key and a certificate for it. Devices trust its pin,
// not its name or dates.
func selfSigned() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "starling coordinator"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = errors.Join(
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	return out.Bytes(), err
}

// Serve serves devices on the endpoint until ctx is done, then closes the
// listener and returns; connections of devices end with Close or by themselves.
func (c *Coordinator) Serve(ctx context.Context, e *Endpoint) error {
	if err := c.closed(e.Listener.Addr()); err != nil {
		return errors.Join(err, e.Listener.Close())
	}
	if e.counter != nil {
		e.counter.sink.Store(&c.metrics)
	}
	return c.serve(ctx, e, c.Handler(), c.sockets)
}

// ServeAdmin serves the operator on an endpoint, as Serve does devices. Its few
// connections are apart, of the files that devices leave: strangers who fill their
// cap do not keep the operator out.
func (c *Coordinator) ServeAdmin(ctx context.Context, e *Endpoint) error {
	return c.serve(ctx, e, c.AdminHandler(), newSockets(sparedFiles/4, 0, 0))
}

func (c *Coordinator) serve(ctx context.Context, e *Endpoint, handler http.Handler, s *sockets) error {
	if e.counter != nil {
		e.counter.sockets.Store(s)
	}
	srv := &http.Server{
		Handler:           bodiless(c.named(handler)),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if counted := counting(conn); counted != nil {
				ctx = context.WithValue(ctx, countedKey{}, counted)
			}
			return ctx
		},
		ConnState: func(conn net.Conn, state http.ConnState) {
			if state == http.StateIdle || state == http.StateClosed {
				counting(conn).settle()
			}
		},
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(e.Listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("coordinator: %w", err)
	}
	return nil
}

// bodiless notes the request, and gives a request's body, of which none is of use here, the time of a
// header: the server reads what is left of it before it answers the next request.
func bodiless(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(countedKey{}).(*countingConn); ok {
			c.begin()
		}
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTimeout)) // of a TCP connection
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// countingListener counts its connections and their bytes as they cross the
// socket, TLS and HTTP included.
type countingListener struct {
	net.Listener
	sink    atomic.Pointer[metrics]
	sockets atomic.Pointer[sockets]
}

func (l *countingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		out := &countingConn{Conn: conn, l: l, leave: func() {}}
		if s := l.sockets.Load(); s != nil {
			if out.leave = s.enter(conn.RemoteAddr()); out.leave == nil {
				if m := l.sink.Load(); m != nil {
					m.refused.Add(1)
				}
				if tcp, ok := conn.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0) // nothing stays behind here, either
				}
				conn.Close()
				continue
			}
		}
		return out, nil
	}
}

// countingConn is a connection whose bytes are counted, also those of its present
// request.
type countingConn struct {
	net.Conn
	l        *countingListener
	up, down atomic.Int64 // since the last begin, and the last settle
	request  atomic.Int64 // what of up the present request is
	once     atomic.Bool  // the present request is for what a device fetches once
	leave    func()       // counts the connection out
	left     sync.Once
}

func (c *countingConn) Close() error {
	c.left.Do(c.leave)
	return c.Conn.Close()
}

// counting is the counting connection below a server's, nil where there is none.
func counting(conn net.Conn) *countingConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c, _ := conn.(*countingConn)
	return c
}

// begin notes what a request took that has come in whole, headers and TLS
// included: while it is answered the server reads ahead, so what comes from here on
// is of the next.
func (c *countingConn) begin() { c.request.Store(c.up.Swap(0)) }

// fetchedOnce says that a request is for what a device fetches once.
func fetchedOnce(r *http.Request) {
	if c, ok := r.Context().Value(countedKey{}).(*countingConn); ok {
		c.once.Store(true)
	}
}

// settle accounts for a request that has been answered.
func (c *countingConn) settle() {
	if c == nil {
		return
	}
	up, down := c.request.Swap(0), c.down.Swap(0)
	if m := c.l.sink.Load(); m != nil && c.once.Swap(false) {
		m.onceUp.Add(up)
		m.onceDown.Add(down)
	}
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if m := c.l.sink.Load(); m != nil {
		m.bytesUp.Add(int64(n))
	}
	c.up.Add(int64(n))
	return n, err
}

// Write gives the peer writeTimeout to take p: one that has stopped reading holds
// its connection no longer.
func (c *countingConn) Write(p []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // a closed connection's Write says so
	n, err := c.Conn.Write(p)
	if m := c.l.sink.Load(); m != nil {
		m.bytesDown.Add(int64(n))
	}
	c.down.Add(int64(n))
	return n, err
}

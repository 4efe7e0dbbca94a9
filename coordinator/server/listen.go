package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// ErrPlain is a plain listener on an address that others can reach.
var ErrPlain = errors.New("server: without TLS only loopback addresses are served")

// Endpoint is a bound listener and how devices reach it.
type Endpoint struct {
	Listener net.Listener
	URL      string // http://host:port or https://host:port
	Pin      []byte // SHA-256 of the certificate that the join token pins; nil without TLS, or where an authority vouches

	counter *countingListener
	cert    *Certificate
	check   func(now time.Time) error // of a listener that can fail; nil: none can be made
}

// On makes an Endpoint of a listener, with the certificate or none.
func On(ln net.Listener, cert *Certificate) *Endpoint {
	counter := &countingListener{Listener: ln}
	e := &Endpoint{Listener: counter, URL: "http://" + ln.Addr().String(), counter: counter, cert: cert}
	if able, ok := ln.(interface{ Check(now time.Time) error }); ok {
		e.check = able.Check
	}
	if cert != nil {
		shown := cert.TLS()
		shown.NextProtos = append([]string{"http/1.1"}, cert.protos...) // WebSocket needs HTTP/1.1
		e.Listener = tls.NewListener(counter, shown)
		e.URL, e.Pin = "https://"+ln.Addr().String(), cert.pin
	}
	return e
}

// Bound limits a listener that no Server serves to as many connections as the process may have open
// files, and to an eighth of that for one address.
func (e *Endpoint) Bound() { e.counter.sockets.Store(newSockets(siteConnections, 0, openFiles())) }

// Listen binds addr with the certificate. With a nil certificate addr must be a loopback address.
func Listen(addr string, cert *Certificate) (*Endpoint, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("server: address %q: %w", addr, err)
	}
	if cert == nil {
		ip := net.ParseIP(host)
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("%w, not %q", ErrPlain, addr)
		}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	e := On(ln, cert)
	if cert != nil && cert.name != "" {
		_, port, err := net.SplitHostPort(ln.Addr().String())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("server: %w", err), ln.Close())
		}
		e.URL = "https://" + net.JoinHostPort(cert.name, port)
	}
	return e, nil
}

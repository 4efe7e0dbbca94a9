package completions

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/starling-fl/starling/internal/app/generation"
	"github.com/starling-fl/starling/internal/app/secretfile"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/certificate"
)

const (
	maxConnections = 256              // of all clients together
	mostIdle       = 15 * time.Second // that a connection may stay without a request: it is one of them
)

// Listening is where a model is served, and to whom.
type Listening struct {
	Address   string // host:port
	TokenFile string // holds what requests show as "Authorization: Bearer"; "": none is asked for, of this machine's programs
	Cert, Key string // PEM files of TLS, read again when they change; "": none
}

// open binds the address. Others than this machine's programs are answered with TLS and a token alone.
func (l Listening) open(log *slog.Logger) (at net.Listener, url, token string, err error) {
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return nil, "", "", usage.Errorf("--listen: %w", err)
	}
	switch {
	case (l.Cert == "") != (l.Key == ""):
		return nil, "", "", usage.Errorf("--tls-cert and --tls-key go together")
	case !loopback(host) && (l.Cert == "" || l.TokenFile == ""):
		return nil, "", "", usage.Errorf("--listen: %s is not a loopback address: give --tls-cert, --tls-key and --token-file, or 127.0.0.1:PORT, "+
			"since anyone who reaches the port reads the model", l.Address)
	}
	if l.TokenFile != "" {
		if token, err = secretfile.Read(l.TokenFile); err != nil {
			return nil, "", "", fmt.Errorf("--token-file: %w", err)
		}
		if len(token) < leastToken {
			return nil, "", "", usage.Errorf("--token-file: the token has %d characters, want %d or more, as openssl rand -hex 16 prints", len(token), leastToken)
		}
	}
	var cert *certificate.Files
	if l.Cert != "" {
		if cert, err = certificate.Open(l.Cert, l.Key, log); err != nil {
			return nil, "", "", usage.Errorf("--tls-cert and --tls-key: %w", err)
		}
	}
	if at, err = net.Listen("tcp", l.Address); err != nil {
		return nil, "", "", fmt.Errorf("--listen: %w", err)
	}
	url = "http://" + at.Addr().String()
	at = netutil.LimitListener(at, maxConnections)
	if cert != nil {
		url = "https://" + at.Addr().String()
		at = tls.NewListener(at, &tls.Config{GetCertificate: cert.Get, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}})
	}
	return at, url, token, nil
}

const leastToken = 16 // characters

// Serve answers requests until ctx ends; ready is told the URL. What a request does not name is as r has it.
func Serve(ctx context.Context, m *generation.Model, l Listening, r generation.Request, c Config, log *slog.Logger, ready func(url string) error) error {
	switch {
	case c.Together < 1 || c.Together > maxWaiting:
		return usage.Errorf("--together is %d, want 1..%d", c.Together, maxWaiting)
	case c.Longest < time.Second:
		return usage.Errorf("--time-limit is %v, want a second or more", c.Longest)
	}
	at, url, token, err := l.open(log)
	if err != nil {
		return err
	}
	h := newServer(m, r, c).handler()
	if token != "" {
		h = authorized(h, token)
	} else {
		h = local(h)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: mostIdle, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx }}
	if err := ready(url); err != nil {
		return errors.Join(err, at.Close())
	}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })() // which ends what is being written, too
	if err := s.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// authorized refuses requests that do not show the token, but for /healthz, whose connection it closes: idle ones of
// anyone would keep others out. Digests are compared: they tell neither the
// token nor its length by the time that takes.
func authorized(next http.Handler, token string) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		shown, bearer := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(shown))
		if req.URL.Path == "/healthz" {
			w.Header().Set("Connection", "close")
		} else if !bearer || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.Header().Set("Connection", "close") // its body is not read
			refuse(w, http.StatusUnauthorized, "", "the request shows no token, or another one: want the header Authorization: Bearer TOKEN")
			return
		}
		next.ServeHTTP(w, req)
	})
}

// local refuses requests that name another host, as those of a page do whose name was made to
// point here, and those that a page of another origin sends. A page that has the token is not that.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host := req.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !loopback(host) || req.Header.Get("Origin") != "" {
			refuse(w, http.StatusForbidden, "", "only programs of this machine are answered: others need --token-file")
			return
		}
		next.ServeHTTP(w, req)
	})
}

// loopback reports whether a host is this machine by itself.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

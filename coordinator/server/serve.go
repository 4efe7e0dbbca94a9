package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/origin"
)

// ErrOpen: other machines can reach the listener of a job that anybody may join.
var ErrOpen = errors.New("server: off loopback a device must show a secret")

// Serve serves devices on the endpoint until ctx is done, then closes the
// listener and returns; connections of devices end with Close or by themselves.
func (s *Server) Serve(ctx context.Context, e *Endpoint) error {
	if err := s.open(e.Listener.Addr()); err != nil {
		return errors.Join(err, e.Listener.Close())
	}
	if e.counter != nil {
		e.counter.meter.Store(s.c.Meter())
	}
	defer s.listening.serve("devices", e)()
	return serveOn(ctx, e, s.identified(s.reachable(s.Handler())), s.sockets, s.log, true)
}

// ServeAdmin serves the operator on an endpoint, as Serve does devices. Its few connections are
// counted apart from devices', so that strangers who fill the cap do not keep the operator out.
func (s *Server) ServeAdmin(ctx context.Context, e *Endpoint) error {
	defer s.listening.serve("operators", e)()
	return serveOn(ctx, e, s.identified(s.named(s.AdminHandler())), newSockets(sparedFiles/4, 0, 0), s.log, true)
}

// serveOn serves a handler. count: bytes are counted as they cross the sockets, for the one
// coordinator that is behind them.
func serveOn(ctx context.Context, e *Endpoint, handler http.Handler, cap *sockets, log *slog.Logger, count bool) error {
	if e.counter != nil {
		e.counter.sockets.Store(cap)
	}
	srv := &http.Server{
		Handler:           bodiless(handler),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if counted := counting(conn); count && counted != nil {
				ctx = context.WithValue(ctx, countedKey{}, counted)
			}
			return ctx
		},
		ConnState: func(conn net.Conn, state http.ConnState) {
			switch state {
			case http.StateIdle, http.StateClosed:
				counting(conn).settle()
			case http.StateHijacked:
				if c := counting(conn); c != nil {
					c.upgraded.Store(true)
				}
			}
		},
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(e.Listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

// open refuses a listener that others can reach for a job that anybody may join.
func (s *Server) open(a net.Addr) error {
	if p := origin.Of(a.String()); s.c.NeedsSecret() || !p.IsValid() || p.Addr().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: %v; set enrolment.secret in the job file", ErrOpen, a)
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

// Package natsserver runs a NATS server in this process: between owners and gateways for serve,
// and between simulations and workers.
package natsserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/starling-fl/starling/coordinator/natsaccess"
)

const (
	startup = 15 * time.Second
	// mostSubjects is of one connection: an owner has one for each gateway's link, and some.
	mostSubjects = 256
	// mostConnections bounds those of whom nothing is known yet, too.
	mostConnections = 1024
	handshake       = 10 // seconds
)

// Server is a running NATS server.
type Server struct{ *server.Server }

// Start starts a server that admits the given users alone.
func Start(s natsaccess.Serving) (natsaccess.Server, error) {
	o := &server.Options{DontListen: s.Listen == "", NoSigs: true, NoLog: true, MaxPayload: int32(s.MaxPayload),
		JetStream: s.Dir != "", StoreDir: s.Dir, TLSConfig: s.TLS, TLSTimeout: handshake, AuthTimeout: handshake,
		MaxConn: mostConnections}
	o.Cluster.NoAdvertise = true // this machine's other addresses are nobody's business
	if s.Dir == "" {
		o.MaxSubs = mostSubjects
	}
	if s.Listen != "" {
		host, port, err := net.SplitHostPort(s.Listen)
		if err != nil {
			return nil, fmt.Errorf("natsserver: address %q: %w", s.Listen, err)
		}
		o.Host = host
		if o.Port, err = strconv.Atoi(port); err != nil || o.Port < 0 || o.Port > 65535 {
			return nil, fmt.Errorf("natsserver: address %q: the port must be a number in 0..65535", s.Listen)
		}
		if o.Port == 0 {
			o.Port = server.RANDOM_PORT
		}
		if len(s.Users) == 0 {
			return nil, errors.New("natsserver: one that listens must have users: others would get in")
		}
	}
	for _, u := range s.Users {
		known := &server.User{Username: u.Name, Password: u.Password}
		if u.Publish != nil || u.Subscribe != nil {
			known.Permissions = &server.Permissions{Publish: only(u.Publish), Subscribe: only(u.Subscribe)}
		}
		o.Users = append(o.Users, known)
	}
	running, err := Run(o, s.Log)
	if err != nil {
		return nil, err
	}
	return running, nil
}

// only allows subjects, and where there is none nothing at all.
func only(subjects []string) *server.SubjectPermission {
	if len(subjects) == 0 {
		return &server.SubjectPermission{Deny: []string{">"}}
	}
	return &server.SubjectPermission{Allow: subjects}
}

// Run starts a server with the given options; log may be nil.
func Run(o *server.Options, log *slog.Logger) (*Server, error) {
	inner, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("natsserver: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &logger{to: log}
	inner.SetLoggerV2(l, false, false, false)
	s := &Server{inner}
	inner.Start()
	for late := time.Now().Add(startup); !inner.ReadyForConnections(startup / 100); {
		if said := l.fatal.Load(); said != nil {
			s.Close()
			return nil, fmt.Errorf("natsserver: %s", *said)
		}
		if time.Now().After(late) {
			s.Close()
			return nil, fmt.Errorf("natsserver: not ready within %v", startup)
		}
	}
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.Server.Addr() }

// Close ends it, and waits until it has.
func (s *Server) Close() {
	s.Shutdown()
	s.WaitForShutdown()
}

// logger takes what the server says. Where its own would end the process, this one keeps why.
type logger struct {
	to    *slog.Logger
	fatal atomic.Pointer[string]
}

func (l *logger) Noticef(format string, v ...any) { l.to.Debug("NATS: " + fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.to.Warn("NATS: " + fmt.Sprintf(format, v...)) }
func (l *logger) Errorf(format string, v ...any)  { l.to.Warn("NATS: " + fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(string, ...any)           {}
func (l *logger) Tracef(string, ...any)           {}

func (l *logger) Fatalf(format string, v ...any) {
	said := fmt.Sprintf(format, v...)
	l.fatal.Store(&said)
}

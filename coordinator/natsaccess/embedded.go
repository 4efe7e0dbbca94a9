package natsaccess

import (
	"crypto/tls"
	"log/slog"
	"net"

	"github.com/nats-io/nats.go"
)

// Serving configures a NATS server in this process, for a program that links one.
type Serving struct {
	Listen     string      // host:port; empty: only this process reaches it
	TLS        *tls.Config // nil: in the clear
	Users      []User      // only these get in; may be nil only if Listen is empty
	MaxPayload int         // of a message, in bytes
	Dir        string      // where JetStream keeps its state; empty: there is none
	Log        *slog.Logger
}

// User is an account of the server, and the subjects that it may use; nil means all of them.
type User struct {
	Name, Password     string
	Publish, Subscribe []string
}

// Server is a NATS server in this process.
type Server interface {
	nats.InProcessConnProvider
	Addr() net.Addr // where it listens; nil if it does not
	Close()
}

// Start starts a server.
type Start func(Serving) (Server, error)

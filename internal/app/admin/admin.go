// Package admin acts on a coordinator's fleet for its operator: in the coordinator's folder, or over its admin address.
package admin

import (
	"fmt"
	"time"

	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// Fleet acts on a fleet for its operator: in the coordinator's folder, or over its admin address.
type Fleet interface {
	// Devices returns the enrolled devices. Ban, Pardon and Forget act on the one whose identity begins with prefix, of at least
	// 8 hexadecimal digits, and return its identity.
	Devices() ([]store.Device, error)
	Ban(prefix, reason string) (identity string, err error)
	Pardon(prefix string) (identity string, err error)
	Forget(prefix string) (identity string, err error)

	// Reached returns the token by which devices reach the coordinator; "" where that is not known yet.
	Reached() (token string, err error)
	Invite(note string, uses int, life time.Duration) (store.Invitation, []byte, error)
	Invitations() ([]store.Invitation, error)
	Revoke(id int64) error

	AddOperator(name string, role store.Role, life time.Duration) (store.Operator, string, error)
	Operators() ([]store.Operator, error)
	RevokeOperator(name string) error
	Acts() (acts []store.Act, head [32]byte, err error)

	// Begin has the rounds of the coordinator's one job begin with the devices that have enrolled.
	Begin() (store.Beginning, error)
	Jobs() ([]server.JobLine, error)
	Submit(store.Hosted) error
	Steer(name string, want store.Want, reason string) error
	Spending() (server.Ledger, error)

	Close() error
}

// Where says where a coordinator is: its folder, or its admin address with an operator's token.
type Where struct {
	Dir       string // the folder that serve was started with
	Server    string // in its place, as https://host:port
	TokenFile string // with Server: a file that holds the token, on one line
}

// Open opens the fleet. Its errors are usage errors where w names none, or more than one.
func (w Where) Open() (Fleet, error) {
	switch {
	case (w.Dir == "") == (w.Server == ""):
		return nil, usage.Errorf("give --dir, the folder that serve was started with, or --server, its admin address")
	case w.Server != "" && w.TokenFile == "":
		return nil, usage.Errorf("--server needs --token-file: a file that holds an operator's token (starling operator add)")
	case w.Dir != "" && w.TokenFile != "":
		return nil, usage.Errorf("--token-file is for --server: with the folder no token is needed")
	case w.Server != "":
		return dial(w.Server, w.TokenFile)
	}
	if err := named.Dir(w.Dir); err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	f, err := store.OpenFleet(w.Dir)
	if err != nil {
		return nil, err
	}
	return folder{f, w.Dir}, nil
}

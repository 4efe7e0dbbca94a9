package operator

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/command"
)

// A hand is what an operator does to a fleet: with the coordinator's folder, or over its
// admin address.
type hand interface {
	Devices() ([]store.Device, error)
	Ban(prefix, reason string) (identity string, err error)
	Pardon(prefix string) (identity string, err error)
	Forget(prefix string) (identity string, err error)

	Reached() (token string, err error)
	Invite(note string, uses int, life time.Duration) (store.Invitation, []byte, error)
	Invitations() ([]store.Invitation, error)
	Revoke(id int64) error

	AddOperator(name string, role store.Role, life time.Duration) (store.Operator, string, error)
	Operators() ([]store.Operator, error)
	RevokeOperator(name string) error
	Acts() (acts []store.Act, head [32]byte, err error)

	Jobs() ([]server.JobLine, error)
	Submit(store.Hosted) error
	Steer(name string, want store.Want, reason string) error
	Spending() (server.Ledger, error)

	Close() error
}

// handFlags adds --dir, --server and --token-file, and returns what opens the fleet.
func handFlags(cmd *cobra.Command) func(func(hand) error) error {
	dir := cmd.Flags().String("dir", "", "the coordinator's folder")
	address := cmd.Flags().String("server", "", "in place of --dir, the coordinator's admin address, as https://host:port")
	token := cmd.Flags().String("token-file", "", "with --server, a file that holds an operator's token (starling operator add), or an ID token of its OpenID issuer")
	return func(use func(hand) error) (err error) {
		var h hand
		switch {
		case (*dir == "") == (*address == ""):
			return command.Usagef("give --dir, the folder that serve was started with, or --server, its admin address")
		case *address != "" && *token == "":
			return command.Usagef("--server needs --token-file: a file that holds an operator's token (starling operator add)")
		case *dir != "" && *token != "":
			return command.Usagef("--token-file is for --server: who has the folder needs no token")
		case *address != "":
			h, err = remoteHand(*address, *token)
		default:
			var f *store.Fleet
			if f, err = store.OpenFleet(*dir); err == nil {
				h = folder{f, *dir}
			}
		}
		if err != nil {
			return err
		}
		defer func() {
			if e := h.Close(); err == nil {
				err = e
			}
		}()
		return use(h)
	}
}

// acted reports what was done: with --json a line that programs read, else a sentence beside what
// commands print for others.
func acted(a *command.App, act, on, sentence string) error {
	done := struct {
		Act string `json:"act"`
		On  string `json:"on"`
	}{act, on}
	return a.Emit(done, func(io.Writer) error {
		_, err := fmt.Fprintln(a.Stderr, sentence)
		return err
	})
}

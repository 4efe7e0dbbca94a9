package secagg

import (
	"crypto/ed25519"
	"errors"
	"io"
)

var errSkeleton = errors.New("secagg: being written")

// A Client is a device's side of one round in one shard. It masks one vector,
// ever. Not safe for concurrent use.
type Client struct{ cfg Config }

// NewClient prepares a device for the round of plan (see PlanHash). rand must be
// a cryptographic source (crypto/rand.Reader). Errors wrap ErrConfig, ErrOverflow.
func NewClient(cfg Config, plan Hash, identity ed25519.PrivateKey, rand io.Reader) (*Client, error) {
	return nil, errSkeleton
}

// Advertise draws the round's keys and returns turn 1.
func (c *Client) Advertise() (*Advertise, error) { return nil, errSkeleton }

// Share checks the roster and returns turn 2.
func (c *Client) Share(m *Roster) (*Shares, error) { return nil, errSkeleton }

// Deliver takes the shares meant for this device and fixes U2. It sends nothing:
// the device may still be training.
func (c *Client) Deliver(m *Delivery) error { return errSkeleton }

// Mask returns turn 3 for Config.Dim symbols, each in -MaxSymbol..MaxSymbol.
func (c *Client) Mask(symbols []int32) (*Masked, error) { return nil, errSkeleton }

// Confirm checks U3 and returns turn 4.
func (c *Client) Confirm(m *Survivors) (*Confirmation, error) { return nil, errSkeleton }

// Reveal checks that at least t devices signed the same sets, returns turn 5 and
// erases every secret.
func (c *Client) Reveal(m *Confirmations) (*Reveal, error) { return nil, errSkeleton }

// Next is the turn whose message Client would send next, TurnDone after Reveal
// or Abort.
func (c *Client) Next() Turn { return TurnDone }

// Resend returns the encoded message already sent in a turn, for a reconnect:
// the same bytes. Nil if that turn has not been taken. Aborting erases them.
func (c *Client) Resend(t Turn) []byte { return nil }

// Abort leaves the round and erases every secret. Idempotent.
func (c *Client) Abort() {}

// Threshold is t of the device's shard, 0 before Share.
func (c *Client) Threshold() int { return 0 }

// ShardSize is |U1|, 0 before Share.
func (c *Client) ShardSize() int { return 0 }

// Peers lists the verify keys of the shard in roster order (identities if
// Identified), nil before Share.
func (c *Client) Peers() []ID { return nil }

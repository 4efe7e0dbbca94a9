package secagg

import (
	"crypto/ed25519"
	"io"
)

// A Keying is the server's side of turn 1, before there are shards.
type Keying struct{ cfg Config }

// NewKeying opens turn 1 of a round. authority is the private half of
// Config.Authority; nil if Identified.
func NewKeying(cfg Config, plan Hash, authority ed25519.PrivateKey) (*Keying, error) {
	return nil, errSkeleton
}

// Add takes turn 1 of an enrolled device; from is the identity the session
// proved. Errors are DeviceErrors.
func (k *Keying) Add(from ID, m *Advertise) error { return errSkeleton }

// Len is the number of devices so far.
func (k *Keying) Len() int { return 0 }

// Cut closes turn 1 and cuts k = ceil(n/ShardMax) shards whose sizes differ by at
// most one, from a uniform permutation drawn from rand. It fails with
// ErrBelowFloor, and may be retried after more devices came, if a shard would
// fall below ShardMin.
func (k *Keying) Cut(rand io.Reader) ([]*Server, error) { return nil, errSkeleton }

package coordinator

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/origin"
	"github.com/starling-fl/starling/internal/wire"
)

// RequireSecret gives a job without an enrolment secret one of its own, drawn once
// and kept in the store; it is part of the tokens from then on. Call it before
// Serve.
func (c *Coordinator) RequireSecret() error {
	if len(c.secret) > 0 {
		return nil
	}
	var err error
	c.secret, err = c.Secret("enrolment")
	return err
}

// NeedsSecret tells whether a device must show a secret to enrol.
func (c *Coordinator) NeedsSecret() bool { return len(c.secret) > 0 }

// Secret is 32 random bytes that are drawn once, never from a seed, and kept in the
// store under a name.
func (c *Coordinator) Secret(name string) ([]byte, error) {
	return c.store.Secret(name, func() ([]byte, error) { return sessionToken(), nil })
}

// Reached keeps a Token, without its secret, for the tokens of invitations.
func (c *Coordinator) Reached(token string) error {
	t, err := wire.ParseToken(token)
	if err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	t.Secret = nil
	return c.store.Reached(t.String())
}

// admitted finds the secret that a device has shown: the job's, or that of an
// invitation, whose number it returns.
func (c *Coordinator) admitted(enrol *wire.Enrol, hello *wire.Hello, welcome *wire.Welcome) (secret []byte, invitation int64, err error) {
	shown := func(secret []byte) bool {
		return wire.EqualProof(enrol.Proof, wire.DeviceProof(secret, hello, welcome, enrol.Identity))
	}
	if shown(c.secret) {
		return c.secret, 0, nil
	}
	invited, err := c.store.SecretsFor(enrol.Identity)
	if err != nil {
		return nil, 0, err
	}
	for _, i := range invited {
		if shown(i.Secret) {
			return i.Secret, i.ID, nil
		}
	}
	return nil, 0, refuse(wire.CodeEnrolment, 0, "wrong enrolment secret, or an invitation that is spent, expired or revoked")
}

// door limits how often each address may knock: enrol a new identity, or fail to.
type door struct {
	most  int  // in an hour
	spare bool // not this machine's own addresses

	mu    *sync.Mutex
	since time.Time            // guarded by mu
	knock map[netip.Prefix]int // guarded by mu
}

const (
	doorPeriod = time.Hour
	// doorAddresses bounds what is remembered: beyond it, addresses that have not
	// knocked yet share one count.
	doorAddresses = 1 << 16
)

func newDoor(most int) door {
	d := door{most: most, mu: new(sync.Mutex), knock: map[netip.Prefix]int{}}
	if most <= 0 {
		d.most, d.spare = 256, true
	}
	return d
}

// at is the entry of an address; guarded by mu.
func (d *door) at(remote string) (netip.Prefix, bool) {
	if now := time.Now(); now.Sub(d.since) > doorPeriod {
		d.since, d.knock = now, map[netip.Prefix]int{}
	}
	from := origin.Of(remote)
	if d.spare && from.Addr().IsLoopback() {
		return from, false
	}
	if d.knock[from] == 0 && len(d.knock) >= doorAddresses {
		from = netip.Prefix{}
	}
	return from, true
}

// open reports whether an address may still knock, and when it may again.
func (d *door) open(remote string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if from, limited := d.at(remote); limited && d.knock[from] >= d.most {
		wait := doorPeriod - time.Since(d.since)
		return refuse(wire.CodeBusy, wait, "%d new or failed enrolments came from this address within an hour; try again in %v", d.most, wait.Round(time.Minute))
	}
	return nil
}

// knocked counts a new device of an address, or a failed attempt.
func (d *door) knocked(remote string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if from, limited := d.at(remote); limited {
		d.knock[from]++
	}
}

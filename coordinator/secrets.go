package coordinator

import (
	"fmt"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// RequireSecret gives a job without an enrolment secret one of its own, drawn once and kept in the
// store. From then on it is part of the tokens. Call it before serving.
func (c *Coordinator) RequireSecret() error {
	if len(c.secret) > 0 {
		return nil
	}
	var err error
	c.secret, err = c.Secret("enrolment")
	return err
}

// NeedsSecret reports whether a device must show a secret to enrol.
func (c *Coordinator) NeedsSecret() bool { return len(c.secret) > 0 }

// Secret returns 32 random bytes, which are drawn once, never from a seed, and kept in the store
// under the name.
func (c *Coordinator) Secret(name string) ([]byte, error) {
	return c.store.Secret(name, NewSecret)
}

// Owns reports whether the coordinator certainly still holds its job's lease.
func (c *Coordinator) Owns() bool { return c.store.Holds() }

// StandsBy reports whether another coordinator waits for the lease and could serve.
func (c *Coordinator) StandsBy() bool { return c.store.StandsBy() }

// NewSecret draws 32 random bytes.
func NewSecret() ([]byte, error) { return sessionToken(), nil }

// Reached stores a Token, without its secret, to be used in invitations.
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
	secretsFor := c.store.SecretsFor
	if h := c.cfg.Host; h != nil {
		// Devices that came before the job had a host hold the job's own.
		if own := []byte(c.t.Job.Enrolment.Secret); len(own) > 0 && shown(own) {
			return own, 0, nil
		}
		secretsFor = h.SecretsFor
	}
	invited, err := secretsFor(enrol.Identity)
	if err != nil {
		return nil, 0, err
	}
	for _, i := range invited {
		if shown(i.Secret) {
			return i.Secret, i.ID, nil
		}
	}
	return nil, 0, link.Refuse(wire.CodeEnrolment, 0, "wrong enrolment secret, or an invitation that is spent, expired or revoked")
}

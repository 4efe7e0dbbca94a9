package edge

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// A Consent is the owner's permission for one coordinator to exceed one limit of the policy. It
// covers what was asked for and no more, and holds as long as the policy itself stays the same.
type Consent struct {
	Key   string `json:"key"`   // of the policy
	Have  string `json:"have"`  // what is allowed instead, as PolicyError has it
	Limit string `json:"limit"` // the policy's own when it was given: with another the owner is asked again
}

// coordinatorOf names the coordinator of a token by what it cannot lend to another: the
// certificate that TLS must show, or its address where the system's authorities vouch for
// that, and the key that certifies its rosters.
func coordinatorOf(t wire.Token) string {
	name := "tls " + hex.EncodeToString(t.Pin)
	if len(t.Pin) == 0 {
		name = t.URL
	}
	if len(t.Authority) > 0 {
		name += " key " + hex.EncodeToString(t.Authority)
	}
	return name
}

// Consent records that the owner accepts the limits in found for the coordinator that a token leads
// to: Run with the same policy does not ask again. It returns an error for limits that cannot be
// accepted.
func (a *Account) Consent(token string, p *Policy, found []PolicyError) error {
	t, err := wire.ParseToken(token)
	if err != nil {
		return fmt.Errorf("%w: token: %w", ErrConfig, err)
	}
	var given []Consent
	for _, f := range found {
		c := Consent{Key: f.Key, Have: f.Have, Limit: p.limit(f.Key)}
		trial := Config{Policy: new(*p)}
		if err := trial.Allow(c.Key, c.Have); err != nil {
			return err
		}
		given = append(given, c)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Consents == nil {
		a.state.Consents = map[string][]Consent{}
	}
	who := coordinatorOf(t)
	for _, c := range given {
		kept := slices.DeleteFunc(a.state.Consents[who], func(old Consent) bool { return old.Key == c.Key })
		a.state.Consents[who] = append(kept, c)
	}
	return a.keep()
}

// Consents lists what the owner has accepted for the coordinator that a token leads to.
func (a *Account) Consents(token string) []Consent {
	t, err := wire.ParseToken(token)
	if err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.state.Consents[coordinatorOf(t)])
}

// Withdraw forgets what the owner has accepted for the coordinator that a token leads to.
func (a *Account) Withdraw(token string) error {
	t, err := wire.ParseToken(token)
	if err != nil {
		return fmt.Errorf("%w: token: %w", ErrConfig, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	who := coordinatorOf(t)
	if _, given := a.state.Consents[who]; !given {
		return nil
	}
	delete(a.state.Consents, who)
	return a.keep()
}

// widen applies what the owner has accepted for this coordinator to the configuration. It does not
// change the policy that was given.
func (c *Config) widen(t wire.Token) {
	c.Account.mu.Lock()
	given := slices.Clone(c.Account.state.Consents[coordinatorOf(t)])
	c.Account.mu.Unlock()
	own := c.Policy
	for _, consent := range given {
		trial := Config{Policy: new(*c.Policy)}
		if consent.Limit != own.limit(consent.Key) || trial.Allow(consent.Key, consent.Have) != nil {
			continue // the owner's policy, or what may be accepted at all, is another by now
		}
		c.Policy = trial.Policy
		c.AcceptNotPrivate = c.AcceptNotPrivate || trial.AcceptNotPrivate
	}
}

// mergeConsents adds what another account of the same data has; a.mu and other's are held.
// Of what both have of one coordinator this one's is kept.
func (a *Account) mergeConsents(other *Account) {
	for who, given := range other.state.Consents {
		if a.state.Consents == nil {
			a.state.Consents = map[string][]Consent{}
		}
		if _, known := a.state.Consents[who]; !known {
			a.state.Consents[who] = slices.Clone(given)
		}
	}
}

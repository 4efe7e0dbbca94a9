package secagg

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
)

// Confirm checks U3 and returns turn 4. RefusalErrors wrap ErrBinding, ErrSet or
// ErrBelowThreshold.
func (c *Client) Confirm(m *Survivors) (*Confirmation, error) {
	enc, _ := m.AppendBinary(nil)
	if err := c.begin("Confirm", TurnConfirm, enc); err != nil {
		return nil, err
	}
	n := len(c.entries)
	var err error
	switch {
	case m.Roster != c.roster:
		err = fmt.Errorf("%w: survivors", ErrBinding)
	case !m.U2.equal(c.u2):
		err = fmt.Errorf("%w: U2 is not the set this device masked over", ErrSet)
	case !m.U3.fits(n) || !m.U3.subset(c.u2):
		err = fmt.Errorf("%w: U3 is not a subset of U2", ErrSet)
	case !m.U3.Has(c.index):
		err = fmt.Errorf("%w: U3 leaves this device out", ErrSet)
	case m.U3.Len() < c.threshold:
		err = fmt.Errorf("%w: U3 has %d devices, threshold %d", ErrBelowThreshold, m.U3.Len(), c.threshold)
	}
	if err != nil {
		return nil, refuse(TurnConfirm, err)
	}
	out := &Confirmation{Roster: c.roster}
	copy(out.Sign[:], ed25519.Sign(c.signer, setStatement(&c.roster, c.u2, m.U3)))
	c.eraseSigner()
	c.u3 = m.U3.clone()
	c.got[TurnConfirm] = sha256.Sum256(enc)
	c.sent[TurnConfirm], _ = out.AppendBinary(nil)
	c.next = TurnReveal
	return out, nil
}

// Reveal checks that at least t devices signed the sets this device signed,
// returns turn 5 (for each peer of U2 one share: the self-mask's if it survived,
// else the mask key's) and erases every secret. RefusalErrors wrap ErrBinding,
// ErrSet, ErrLength, ErrBelowThreshold or ErrSignature.
func (c *Client) Reveal(m *Confirmations) (*Reveal, error) {
	enc, _ := m.AppendBinary(nil)
	if err := c.begin("Reveal", TurnReveal, enc); err != nil {
		return nil, err
	}
	if err := c.checkConfirmations(m); err != nil {
		return nil, err
	}
	out := &Reveal{Roster: c.roster, Held: newSet(len(c.entries))}
	for i := range c.entries {
		if !c.u2.Has(i) || !c.held.Has(i) {
			continue
		}
		out.Held.add(i)
		if c.u3.Has(i) {
			out.Shares = append(out.Shares, c.shares[i][scalarSize:]...)
		} else {
			out.Shares = append(out.Shares, c.shares[i][:scalarSize]...)
		}
	}
	c.eraseSecrets()
	c.got[TurnReveal] = sha256.Sum256(enc)
	c.sent[TurnReveal], _ = out.AppendBinary(nil)
	c.next = TurnDone
	return out, nil
}

func (c *Client) checkConfirmations(m *Confirmations) error {
	var err error
	switch {
	case m.Roster != c.roster:
		err = fmt.Errorf("%w: confirmations", ErrBinding)
	case !m.U4.fits(len(c.entries)) || !m.U4.subset(c.u3):
		err = fmt.Errorf("%w: U4 is not a subset of U3", ErrSet)
	case len(m.Signs) != m.U4.Len()*sigSize:
		err = fmt.Errorf("%w: signatures of %d bytes, want %d", ErrLength, len(m.Signs), m.U4.Len()*sigSize)
	case m.U4.Len() < c.threshold:
		err = fmt.Errorf("%w: %d devices signed the survivor set, threshold %d", ErrBelowThreshold, m.U4.Len(), c.threshold)
	}
	if err != nil {
		return refuse(TurnReveal, err)
	}
	statement := setStatement(&c.roster, c.u2, c.u3)
	signs := m.Signs
	var all []signed
	var signers []int
	for i := range c.entries {
		if m.U4.Has(i) {
			all = append(all, signed{&c.entries[i].Keys.Verify, statement, (*[sigSize]byte)(signs)})
			signers = append(signers, i)
			signs = signs[sigSize:]
		}
	}
	bad, err := verifyAll(c.rand, all)
	if err == nil && bad >= 0 {
		err = refuse(TurnReveal, fmt.Errorf("%w: device %d did not sign the sets this device signed", ErrSignature, signers[bad]))
	}
	return err
}

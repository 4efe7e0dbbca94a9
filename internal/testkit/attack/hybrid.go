package attack

import (
	"bytes"
	"crypto/hpke"
	"fmt"
	"slices"
)

// Sizes of section 5's table, by suite.
const (
	keyX25519   = 32
	keyKEM      = 1216 // MLKEM768-X25519, behind X25519's
	boxX25519   = 80
	encapsulate = 1120 // before the box
)

// box is the length of a sealed pair.
func (c contract) box() int {
	if c.hybrid {
		return encapsulate + boxX25519
	}
	return boxX25519
}

// sealPublic is the key that others seal for.
func (m *Member) sealPublic() []byte {
	if m.Sealing != nil {
		return m.Sealing
	}
	if m.kem == nil {
		return publicKey(m.sealKey)
	}
	return slices.Concat(publicKey(m.sealKey), m.kem.PublicKey().Bytes())
}

// encapsulated is what goes before a ciphertext to a key, and the 32 bytes that are
// exported; both are nothing in the suite without.
func (m *Member) encapsulated(public, info []byte) (enc, secret []byte, err error) {
	if m.kem == nil {
		return nil, nil, nil
	}
	if len(public) != keyX25519+keyKEM {
		return nil, nil, fmt.Errorf("attack: a sealing key of %d bytes", len(public))
	}
	to, err := hpke.MLKEM768X25519().NewPublicKey(public[keyX25519:])
	if err != nil {
		return nil, nil, fmt.Errorf("attack: %w", err)
	}
	enc, sender, err := hpke.NewSender(to, hpke.HKDFSHA256(), hpke.ExportOnly(), info)
	if err != nil {
		return nil, nil, fmt.Errorf("attack: %w", err)
	}
	secret, err = sender.Export("share", 32)
	return enc, secret, err
}

// decapsulated takes what was before a ciphertext off it.
func (m *Member) decapsulated(sealed, info []byte) (ciphertext, secret []byte, err error) {
	if m.kem == nil {
		return sealed, nil, nil
	}
	recipient, err := hpke.NewRecipient(bytes.Clone(sealed[:encapsulate]), m.kem, hpke.HKDFSHA256(), hpke.ExportOnly(), info)
	if err != nil {
		return nil, nil, fmt.Errorf("attack: %w", err)
	}
	secret, err = recipient.Export("share", 32)
	return sealed[encapsulate:], secret, err
}

// sealPair is what a dealer puts into its list for a holder.
func (m *Member) sealPair(holder int, pair []byte) ([]byte, error) {
	dh, data, err := m.shareKey(m.me, holder)
	if err != nil {
		return nil, err
	}
	enc, secret, err := m.encapsulated(m.peer(holder, 2), data)
	if err != nil {
		return nil, err
	}
	return append(enc, seal(kdf(slices.Concat(dh, secret), data, 16), pair, data)...), nil
}

// openPair is what a dealer has sealed for this member.
func (m *Member) openPair(dealer int, sealed []byte) ([]byte, error) {
	dh, data, err := m.shareKey(dealer, m.me)
	if err != nil {
		return nil, err
	}
	ciphertext, secret, err := m.decapsulated(sealed, data)
	if err != nil {
		return nil, err
	}
	return open(kdf(slices.Concat(dh, secret), data, 16), ciphertext, data)
}

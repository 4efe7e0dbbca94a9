//go:build !js || full

package secagg

import (
	"crypto/hpke"
	"fmt"
)

// hybridOffered reports whether this build has SuiteHybrid.
const hybridOffered = true

// A kemPrivate is a private MLKEM768-X25519 key.
type kemPrivate = hpke.PrivateKey

// newKEM derives a key from 32 bytes.
func newKEM(seed []byte) (kemPrivate, []byte, error) {
	k, err := hpke.MLKEM768X25519().NewPrivateKey(seed)
	if err != nil {
		return nil, nil, fmt.Errorf("secagg: hybrid key: %w", err)
	}
	return k, k.PublicKey().Bytes(), nil
}

func checkKEMKey(public []byte) error {
	_, err := hpke.MLKEM768X25519().NewPublicKey(public)
	return err
}

// encapsulate makes a secret that only the holder of the public key can export
// from what is encapsulated.
func encapsulate(public, info []byte) (encapsulated, secret []byte, err error) {
	pk, err := hpke.MLKEM768X25519().NewPublicKey(public)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	enc, ctx, err := hpke.NewSender(pk, hpke.HKDFSHA256(), hpke.ExportOnly(), info)
	if err != nil {
		return nil, nil, fmt.Errorf("secagg: encapsulating: %w", err)
	}
	if secret, err = ctx.Export(labelShare, 32); err != nil {
		return nil, nil, fmt.Errorf("secagg: exporting: %w", err)
	}
	return enc, secret, nil
}

func decapsulate(k kemPrivate, encapsulated, info []byte) ([]byte, error) {
	ctx, err := hpke.NewRecipient(encapsulated, k, hpke.HKDFSHA256(), hpke.ExportOnly(), info)
	if err != nil {
		return nil, err
	}
	return ctx.Export(labelShare, 32)
}

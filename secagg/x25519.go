//go:build !js || full

package secagg

import (
	"crypto/ecdh"
	"fmt"
)

// A dhKey is a private X25519 key (RFC 7748) with its public one.
type dhKey = *ecdh.PrivateKey

func newDHKey(k *[32]byte) dhKey {
	priv, err := ecdh.X25519().NewPrivateKey(k[:])
	if err != nil {
		panic(err) // any 32 bytes are a key
	}
	return priv
}

// agree is X25519; it refuses public keys of low order, as crypto/ecdh does.
func agree(priv dhKey, peer []byte) ([]byte, error) {
	pub, err := ecdh.X25519().NewPublicKey(peer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	ss, err := priv.ECDH(pub)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return ss, nil
}

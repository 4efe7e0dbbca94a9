//go:build js && !full

package secagg

import (
	"crypto/subtle"
	"fmt"
)

// A dhKey is a private X25519 key (RFC 7748) with its public one. crypto/ecdh
// would bring the NIST curves: a tenth of what a browser loads.
type dhKey struct{ private, public [32]byte }

func newDHKey(k *[32]byte) dhKey {
	d := dhKey{private: *k}
	ladder(&d.public, k, &[32]byte{9})
	return d
}

func (d dhKey) PublicKey() dhPublic { return dhPublic(d.public) }

type dhPublic [32]byte

func (p dhPublic) Bytes() []byte { return p[:] }

// agree is X25519; it refuses public keys of low order, as crypto/ecdh does.
func agree(priv dhKey, peer []byte) ([]byte, error) {
	if len(peer) != 32 {
		return nil, fmt.Errorf("%w: %d bytes, 32 expected", ErrKey, len(peer))
	}
	var ss, zero [32]byte
	ladder(&ss, &priv.private, (*[32]byte)(peer))
	if subtle.ConstantTimeCompare(ss[:], zero[:]) == 1 {
		return nil, fmt.Errorf("%w: low order", ErrKey)
	}
	return ss[:], nil
}

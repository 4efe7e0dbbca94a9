package secagg

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// A sealed share is a pair of scalars, the dealer's mask key share and its
// self-mask share, under AES-128-GCM. The key comes from X25519 between the
// two devices' per-round sealing keys, so that only the two can make or read it,
// and HKDF with R and the direction; it seals one message, under a zero nonce.
//
// SuiteHybrid adds, never replaces: a secret exported from an HPKE context
// (RFC 9180, base mode, KEM MLKEM768-X25519) is hashed into the key beside X25519's, and
// the encapsulated key precedes the ciphertext.

const (
	plainSize = 2 * scalarSize
	boxSize   = plainSize + 16 // with GCM's tag
	kemSize   = 1120           // encapsulated MLKEM768-X25519 key
	kemKey    = 1216           // its public key
)

func (s Suite) sealKeySize() int {
	if s == SuiteHybrid {
		return 32 + kemKey
	}
	return 32
}

func (s Suite) sealedSize() int {
	if s == SuiteHybrid {
		return kemSize + boxSize
	}
	return boxSize
}

// A sealer holds one device's private sealing keys.
type sealer struct {
	suite Suite
	dh    dhKey
	kem   kemPrivate // SuiteHybrid only
}

// newSealer derives the keys from 32 or, for the hybrid, 64 random bytes, and
// returns the public part.
func newSealer(suite Suite, seed []byte) (*sealer, []byte, error) {
	var k [32]byte
	copy(k[:], seed)
	s := &sealer{suite: suite, dh: x25519Private(&k)}
	public := s.dh.PublicKey().Bytes()
	if suite == SuiteHybrid {
		k, kemPublic, err := newKEM(seed[32:64])
		if err != nil {
			return nil, nil, err
		}
		s.kem, public = k, append(public, kemPublic...)
	}
	return s, public, nil
}

func checkKEM(suite Suite, public []byte) error {
	if suite != SuiteHybrid {
		return nil
	}
	if err := checkKEMKey(public[32:]); err != nil {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	return nil
}

// shared holds what X25519 with one peer gave.
type shared [32]byte

func (s *sealer) agree(peer []byte) (out shared, err error) {
	ss, err := agree(s.dh, peer[:32])
	if err != nil {
		return out, err
	}
	copy(out[:], ss)
	clear(ss)
	return out, nil
}

// boxAEAD is the AEAD for one direction; extra is the KEM's secret, if any.
func boxAEAD(ss *shared, extra []byte, roster *Hash, dealer, holder int) cipher.AEAD {
	var key [16]byte
	secret := append(append(make([]byte, 0, 64), ss[:]...), extra...)
	derive(key[:], secret, labelShare, roster, pair(dealer, holder)...)
	clear(secret)
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	clear(key[:])
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has GCM's block size
	}
	return gcm
}

func boxInfo(roster *Hash, dealer, holder int) []byte {
	b := append([]byte(labelShare), roster[:]...)
	return append(b, pair(dealer, holder)...)
}

var zeroNonce [12]byte

// seal appends the sealed pair of shares that dealer sends to holder.
func (s *sealer) seal(b []byte, ss *shared, peer []byte, plain *[plainSize]byte, roster *Hash, dealer, holder int) ([]byte, error) {
	info := boxInfo(roster, dealer, holder)
	var extra []byte
	if s.suite == SuiteHybrid {
		enc, secret, err := encapsulate(peer[32:], info)
		if err != nil {
			return nil, err
		}
		extra = secret
		b = append(b, enc...)
	}
	b = boxAEAD(ss, extra, roster, dealer, holder).Seal(b, zeroNonce[:], plain[:], info)
	clear(extra)
	return b, nil
}

// open reads a sealed pair of shares; ok is false if it was not sealed by dealer
// for holder under this roster.
func (s *sealer) open(plain *[plainSize]byte, ss *shared, sealed []byte, roster *Hash, dealer, holder int) (ok bool) {
	info := boxInfo(roster, dealer, holder)
	var extra []byte
	if s.suite == SuiteHybrid {
		var err error
		if extra, err = decapsulate(s.kem, sealed[:kemSize], info); err != nil {
			return false
		}
		sealed = sealed[kemSize:]
	}
	out, err := boxAEAD(ss, extra, roster, dealer, holder).Open(plain[:0], zeroNonce[:], sealed, info)
	clear(extra)
	return err == nil && len(out) == plainSize
}

// seedSize is the randomness newSealer takes.
func (s Suite) seedSize() int {
	if s == SuiteHybrid {
		return 64
	}
	return 32
}

package secagg

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"filippo.io/edwards25519"
)

// Labels separate every use of a hash, a signature and a derived key.
const (
	salt          = "starling/secagg/1"
	labelPlan     = "starling/secagg/1 plan"
	labelRoster   = "starling/secagg/1 roster"
	labelKeys     = "starling/secagg/1 keys"
	labelVouch    = "starling/secagg/1 vouch"
	labelCert     = "starling/secagg/1 certificate"
	labelSets     = "starling/secagg/1 sets"
	labelMaskKey  = "mask key"
	labelSelfMask = "self mask"
	labelPairMask = "pair mask"
	labelShare    = "share"
)

// derive is HKDF-SHA256 with the package's salt and info = label || bind || extra.
func derive(out []byte, secret []byte, label string, bind *Hash, extra ...byte) {
	info := make([]byte, 0, len(label)+len(bind)+len(extra))
	info = append(append(append(info, label...), bind[:]...), extra...)
	k, err := hkdf.Key(sha256.New, secret, []byte(salt), string(info), len(out))
	if err != nil {
		panic(err) // only for outputs beyond 255 hashes
	}
	copy(out, k)
	clear(k)
}

// pair encodes two roster indices, two bytes each, big-endian.
func pair(a, b int) []byte {
	var p [4]byte
	binary.BigEndian.PutUint16(p[:], uint16(a))
	binary.BigEndian.PutUint16(p[2:], uint16(b))
	return p[:]
}

// maskPrivate is the X25519 key that a shared scalar stands for.
func maskPrivate(scalar []byte, plan *Hash) dhKey {
	k := maskPrivateBytes(scalar, plan)
	return x25519Private(&k)
}

func maskPrivateBytes(scalar []byte, plan *Hash) (k [32]byte) {
	derive(k[:], scalar, labelMaskKey, plan)
	return k
}

// x25519Private takes 32 bytes and clears them. Clamping is X25519's.
func x25519Private(k *[32]byte) dhKey {
	priv := newDHKey(k)
	clear(k[:])
	return priv
}

// selfMaskKey is the generator key that a shared scalar stands for.
func selfMaskKey(scalar []byte, roster *Hash) (k maskKey) {
	derive(k[:], scalar, labelSelfMask, roster)
	return k
}

// pairMaskKey is the generator key of the pair (i, j): both compute the same.
func pairMaskKey(priv dhKey, peer []byte, roster *Hash, i, j int) (k maskKey, err error) {
	ss, err := agree(priv, peer)
	if err != nil {
		return k, err
	}
	derive(k[:], ss, labelPairMask, roster, pair(min(i, j), max(i, j))...)
	clear(ss)
	return k, nil
}

// randomScalar is uniform: 64 random bytes reduced.
func randomScalar(rand io.Reader) (*edwards25519.Scalar, error) {
	var b [64]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return nil, fmt.Errorf("secagg: reading randomness: %w", err)
	}
	s, err := edwards25519.NewScalar().SetUniformBytes(b[:])
	clear(b[:])
	return s, err
}

// random32 reads 32 random bytes.
func random32(rand io.Reader) (b [32]byte, err error) {
	if _, err = io.ReadFull(rand, b[:]); err != nil {
		err = fmt.Errorf("secagg: reading randomness: %w", err)
	}
	return b, err
}

// keyStatement is what turn 1's signatures cover: (P, keys) under a label.
func keyStatement(label string, plan *Hash, k *Keys) []byte {
	b := append([]byte(label), plan[:]...)
	return k.appendTo(b)
}

// setStatement is what turn 4's signatures cover: (R, U2, U3).
func setStatement(roster *Hash, u2, u3 Set) []byte {
	b := append([]byte(labelSets), roster[:]...)
	return append(append(b, u2...), u3...)
}

// Hash is R: it covers P, the shard's number and every signed entry.
func (m *Roster) Hash() Hash {
	b, _ := m.AppendBinary([]byte(labelRoster))
	return sha256.Sum256(b)
}

// lowOrder lists the u-coordinates of the points of order 1, 2, 4 and 8 of
// Curve25519 and its twist, and their unreduced twins, little-endian: with
// these X25519 agrees on zero. crypto/ecdh refuses them when used; here they are
// refused before anything is shared.
var lowOrder = [...][32]byte{
	{},
	{0: 1},
	{0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
		0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00},
	{0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b,
		0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57},
	fieldNear(0xec), fieldNear(0xed), fieldNear(0xee), // p-1, p, p+1
}

// fieldNear is the encoding of 2^255-256+low.
func fieldNear(low byte) (u [32]byte) {
	for i := range u {
		u[i] = 0xff
	}
	u[0], u[31] = low, 0x7f
	return u
}

func hasLowOrder(public []byte) bool {
	u := [32]byte(public)
	u[31] &= 0x7f // X25519 ignores the top bit
	for i := range lowOrder {
		if u == lowOrder[i] {
			return true
		}
	}
	return false
}

// check refuses keys of the wrong shape or of low order.
func (k *Keys) check(suite Suite) error {
	if len(k.Seal) != suite.sealKeySize() {
		return fmt.Errorf("%w: sealing key of %d bytes, want %d", ErrKey, len(k.Seal), suite.sealKeySize())
	}
	if hasLowOrder(k.Mask[:]) {
		return fmt.Errorf("%w: mask key has low order", ErrKey)
	}
	if hasLowOrder(k.Seal[:32]) {
		return fmt.Errorf("%w: sealing key has low order", ErrKey)
	}
	return checkKEM(suite, k.Seal)
}

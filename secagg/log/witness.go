package log

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// ParseWitness reads a witness's key, NAME+HASH+KEY, as tools of transparency logs write
// it: one that signs notes as they are (golang.org/x/mod/sumdb/note), or with the time
// (C2SP tlog-cosignature, type 4), which x/mod does not have and whose library for Go
// brings post-quantum signatures into every browser.
func ParseWitness(text string) (note.Verifier, error) {
	name, rest, _ := strings.Cut(text, "+")
	hash, coded, _ := strings.Cut(rest, "+")
	if key, err := base64.StdEncoding.DecodeString(coded); err == nil && len(key) == 1+ed25519.PublicKeySize && key[0] == algCosignature {
		if sum := sha256.Sum256(append([]byte(name+"\n"), key...)); name != "" && !strings.ContainsAny(name, " \n") && fmt.Sprintf("%x", sum[:4]) == hash {
			return cosigner{name, binary.BigEndian.Uint32(sum[:]), key[1:]}, nil
		}
		return nil, fmt.Errorf("%w: %.80q is not a witness's key: its hash does not fit name and key", ErrHead, text)
	}
	v, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %.80q is not a witness's key (NAME+HASH+KEY): %w", ErrHead, text, err)
	}
	return v, nil
}

// algCosignature is the type of keys that sign a note and the time.
const algCosignature = 4

// cosigner verifies what such a key has signed.
type cosigner struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

func (c cosigner) Name() string    { return c.name }
func (c cosigner) KeyHash() uint32 { return c.hash }

// Verify takes eight bytes of time and the signature over it and the text.
func (c cosigner) Verify(msg, sig []byte) bool {
	if len(sig) != 8+ed25519.SignatureSize {
		return false
	}
	signed := fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", binary.BigEndian.Uint64(sig), msg)
	return ed25519.Verify(c.key, signed, sig[8:])
}

// Cosigned appends a witness's signature lines to a signed head. It is an error if the result is no
// valid note of the log.
func Cosigned(signed, lines []byte, key [32]byte) ([]byte, error) {
	both := append(signed[:len(signed):len(signed)], lines...)
	if _, err := OpenHead(both, key, ""); err != nil {
		return nil, err
	}
	return both, nil
}

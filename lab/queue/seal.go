package queue

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// key is a run's: who has it makes items and results, and reads them. It never reaches the
// cluster: the operator gives it to workers as the fragment of the queue's URL.
type key [32]byte

// What is sealed, each under a key of its own.
const (
	sealedItem   = "item"
	sealedResult = "result"
)

var errSeal = errors.New("queue: not sealed with this run's key")

func newKey() (k key) {
	_, _ = rand.Read(k[:]) // it never fails: package crypto/rand
	return k
}

// cutKey takes a URL's fragment from it; given is false if it has none.
func cutKey(url string) (address string, k key, given bool, err error) {
	address, text, given := strings.Cut(url, "#")
	if !given {
		return address, k, false, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != len(k) {
		return "", k, true, fmt.Errorf("queue: the key behind the # of the queue's URL has %d characters, as starling simulate prints them",
			base64.RawURLEncoding.EncodedLen(len(k)))
	}
	return address, key(b), true, nil
}

// HasKey reports whether a queue's URL holds the key of its runs.
func HasKey(url string) bool { return strings.Contains(url, "#") }

func (k key) on(url string) string { return url + "#" + base64.RawURLEncoding.EncodeToString(k[:]) }

func (k key) aead(kind string) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, k[:], nil, "starling queue "+kind, 32)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	a, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return a, nil
}

func (k key) seal(kind string, data []byte) ([]byte, error) {
	a, err := k.aead(kind)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, data, nil), nil
}

func (k key) open(kind string, sealed []byte) ([]byte, error) {
	a, err := k.aead(kind)
	if err != nil {
		return nil, err
	}
	data, err := a.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, errSeal
	}
	return data, nil
}

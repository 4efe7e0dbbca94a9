package edge

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// pemType is the PEM block of an identity file, which holds the 32-byte Ed25519 seed.
const pemType = "STARLING IDENTITY"

// ErrIdentity is an identity file that cannot be used.
var ErrIdentity = errors.New("edge: bad identity file")

// NewIdentity draws a new identity.
func NewIdentity() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}

// LoadIdentity reads the identity stored at path. If there is none it draws one and stores it
// there, readable by its owner alone. It refuses a file that others can read.
func LoadIdentity(path string) (ed25519.PrivateKey, error) {
	data, err := named.Read(path, 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return createIdentity(path)
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if open := info.Mode().Perm() & 0o077; open != 0 && runtime.GOOS != "windows" && runtime.GOOS != "js" {
		return nil, fmt.Errorf("%w: %s has mode %04o, others can read it; 0600 expected", ErrIdentity, path, info.Mode().Perm())
	}
	key, err := ParseIdentity(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// ParseIdentity decodes a result of FormatIdentity.
func ParseIdentity(data []byte) (ed25519.PrivateKey, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, fmt.Errorf("%w: no PEM block", ErrIdentity)
	case block.Type != pemType:
		return nil, fmt.Errorf("%w: PEM block %q, %q expected", ErrIdentity, block.Type, pemType)
	case len(block.Bytes) != ed25519.SeedSize:
		return nil, fmt.Errorf("%w: %d bytes of key, %d expected", ErrIdentity, len(block.Bytes), ed25519.SeedSize)
	case len(rest) != 0:
		return nil, fmt.Errorf("%w: %d bytes behind the key", ErrIdentity, len(rest))
	}
	return ed25519.NewKeyFromSeed(block.Bytes), nil
}

// FormatIdentity encodes an identity as text; ParseIdentity decodes it.
func FormatIdentity(key ed25519.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: key.Seed()})
}

// createIdentity stores a new identity. If two processes do so at once, both use the same one.
func createIdentity(path string) (ed25519.PrivateKey, error) {
	key, err := NewIdentity()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := durable.Create(path, FormatIdentity(key), 0o600); errors.Is(err, fs.ErrExist) {
		return LoadIdentity(path)
	} else if err != nil {
		return nil, err
	}
	return key, nil
}

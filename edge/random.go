package edge

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"

	"github.com/starling-fl/starling/dp"
)

// Purposes of randomness. Each has a stream of its own, so that a seeded run
// repeats whatever the order in which goroutines draw.
const (
	forSecagg    = "secagg"
	forRounding  = "rounding"
	forBatches   = "batches"
	forProviders = "providers"
	forSession   = "session"
	forNoise     = "noise"
	forScores    = "scores"
	forGroups    = "groups"
)

// random is the source for one purpose in one round: crypto/rand, or the
// AES-256-CTR stream under a key derived from a reproducible run's seed.
func random(seed []byte, purpose string, round uint64) io.Reader {
	if len(seed) == 0 {
		return rand.Reader
	}
	m := hmac.New(sha256.New, seed)
	m.Write([]byte(purpose))
	m.Write(binary.LittleEndian.AppendUint64(nil, round))
	block, err := aes.NewCipher(m.Sum(nil))
	if err != nil {
		panic(err) // 32 bytes are a valid key
	}
	return cipher.StreamReader{S: cipher.NewCTR(block, make([]byte, aes.BlockSize)), R: zeros{}}
}

// Reproducible returns the seed and the identity of device i of a reproducible fleet. They are the
// same over sockets and in a simulation.
func Reproducible(fleet []byte, i int) (seed []byte, identity ed25519.PrivateKey) {
	derive := func(purpose string) []byte {
		m := hmac.New(sha256.New, fleet)
		m.Write([]byte(purpose))
		m.Write(binary.LittleEndian.AppendUint64(nil, uint64(i)))
		return m.Sum(nil)
	}
	return derive("device"), ed25519.NewKeyFromSeed(derive("identity"))
}

// OwnNoise is the source of the noise that a reproducible device adds to its vector in a round. See
// Contribution.Own.
func OwnNoise(seed []byte, round uint64) dp.Noise {
	return dp.NewSampler(random(seed, forNoise, round))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

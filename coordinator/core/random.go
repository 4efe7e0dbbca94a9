package core

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
)

// Randomness hands out a reader for each purpose. Without a seed all of them
// are crypto/rand; with one each is an AES-256-CTR stream of its own, so that a
// run repeats whatever the order in which purposes are served.
type Randomness struct{ seed []byte }

func (r Randomness) Secret() bool { return r.seed == nil }

// Stream is the reader for a purpose in a round (0: none).
func (r Randomness) Stream(purpose string, round uint64) io.Reader {
	if r.seed == nil {
		return rand.Reader
	}
	h := sha256.New()
	fmt.Fprintf(h, "starling reproducible\x00%d\x00", len(r.seed))
	h.Write(r.seed)
	fmt.Fprintf(h, "\x00%s\x00%d", purpose, round)
	block, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		panic(err) // 32 bytes always make a key
	}
	return &ctrReader{cipher.NewCTR(block, make([]byte, aes.BlockSize))}
}

type ctrReader struct{ s cipher.Stream }

func (c *ctrReader) Read(p []byte) (int, error) {
	clear(p)
	c.s.XORKeyStream(p, p)
	return len(p), nil
}

// Read returns n bytes of a purpose's stream.
func (r Randomness) Read(purpose string, round uint64, n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(r.Stream(purpose, round), b); err != nil {
		return nil, fmt.Errorf("core: randomness for %s: %w", purpose, err)
	}
	return b, nil
}

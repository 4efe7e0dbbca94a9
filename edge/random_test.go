package edge

import (
	"crypto/rand"
	"fmt"
	"io"
	"testing"
)

// TestStreamsAreApart: with a seed no two purposes, rounds or devices share a
// stream; without one all of them are the system's.
func TestStreamsAreApart(t *testing.T) {
	seen := map[string]string{}
	for device := range 2 {
		seed, _ := Reproducible([]byte("a fleet's seed, long enough"), device)
		for _, purpose := range []string{forSecagg, forRounding, forBatches, forProviders, forSession, forNoise} {
			for round := range uint64(3) {
				b := make([]byte, 32)
				_, err := io.ReadFull(random(seed, purpose, round), b)
				ok(t, err)
				what := fmt.Sprintf("%s of device %d in round %d", purpose, device, round)
				if other, twice := seen[string(b)]; twice {
					t.Errorf("%s is %s", what, other)
				}
				seen[string(b)] = what
				if random(nil, purpose, round) != io.Reader(rand.Reader) {
					t.Errorf("%s without a seed is not read from crypto/rand", what)
				}
			}
		}
	}
}

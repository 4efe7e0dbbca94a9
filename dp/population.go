package dp

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
)

// Population lists the identity keys that have a coin, in an order, each once.
type Population struct {
	n    int
	runs []Run
}

// Len counts them.
func (p Population) Len() int { return p.n }

// Run is a range of ordered identity keys with the same first bytes. A roll is a hash of its runs'
// hashes, so that after a change only the runs that changed are hashed again.
type Run struct {
	n     int
	first [RunBytes]byte
	hash  [32]byte
}

// RunBytes is the length of the common beginning: ten million keys make runs of 153.
const RunBytes = 2

// beginning of a key; a shorter one is as if zeros followed.
func beginning(key []byte) (first [RunBytes]byte) {
	copy(first[:], key)
	return first
}

// NewRun is a run of keys that ascend.
func NewRun(keys [][]byte) (Run, error) {
	for i, k := range keys {
		switch {
		case len(k) == 0:
			return Run{}, errEmpty(i, len(keys))
		case beginning(k) != beginning(keys[0]):
			return Run{}, fmt.Errorf("dp: identity %d of %d does not begin as the run does: %w", i, len(keys), ErrCertificate)
		case i > 0 && bytes.Compare(keys[i-1], k) >= 0:
			return Run{}, fmt.Errorf("dp: identity %d of %d does not ascend: %w", i, len(keys), ErrCertificate)
		}
	}
	if len(keys) == 0 {
		return Run{}, fmt.Errorf("dp: a run without keys: %w", ErrCertificate)
	}
	return runOf(keys), nil
}

func runOf(keys [][]byte) Run {
	b := append(make([]byte, 0, 256), "starling dp run v1\x00"...) // most have few keys
	for _, k := range keys {
		b = appendKey(b, k)
	}
	return Run{n: len(keys), first: beginning(keys[0]), hash: sha256.Sum256(b)}
}

func appendKey(b, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(key))), key...)
}

// runsOf cuts keys into runs, as long as they get.
func runsOf(keys [][]byte) (runs []Run) {
	for at := 0; at < len(keys); {
		end := at + 1
		for end < len(keys) && beginning(keys[end]) == beginning(keys[at]) {
			end++
		}
		runs = append(runs, runOf(keys[at:end]))
		at = end
	}
	return runs
}

// Runs is a population of keys that ascend, by its runs. It holds the slice.
func Runs(runs []Run) (Population, error) {
	p := Population{runs: runs}
	for i, r := range runs {
		if r.n == 0 || i > 0 && bytes.Compare(runs[i-1].first[:], r.first[:]) >= 0 {
			return Population{}, fmt.Errorf("dp: run %d of %d does not ascend: %w", i, len(runs), ErrCertificate)
		}
		p.n += r.n
	}
	return p, nil
}

// Keys is a population by its keys, in any order: two equal or empty ones are an error.
func Keys(keys [][]byte) (Population, error) {
	seen := make(map[string]struct{}, len(keys))
	for i, k := range keys {
		if len(k) == 0 {
			return Population{}, errEmpty(i, len(keys))
		}
		if _, dup := seen[string(k)]; dup {
			return Population{}, fmt.Errorf("dp: an identity (%x) is enrolled twice: %w", k[:min(8, len(k))], ErrCertificate)
		}
		seen[string(k)] = struct{}{}
	}
	return Population{len(keys), runsOf(keys)}, nil
}

func errEmpty(i, n int) error {
	return fmt.Errorf("dp: identity %d of %d is empty: %w", i, n, ErrCertificate)
}

// rollMAC is HMAC-SHA-256 under the nonce over the runs of a population: how many keys each has,
// and their hash. Without the key, whoever can guess who is enrolled could check it against a
// certificate, and two certificates of one population would be alike.
func rollMAC(nonce [32]byte, runs []Run) [32]byte {
	h := hmac.New(sha256.New, nonce[:])
	h.Write([]byte("starling dp roll v3\x00"))
	var b [8 + 32]byte
	for _, r := range runs {
		binary.BigEndian.PutUint64(b[:], uint64(r.n))
		copy(b[8:], r.hash[:])
		h.Write(b[:])
	}
	return [32]byte(h.Sum(nil))
}

// rollMACv2 is what certificates had before there were runs: of all keys at once.
func rollMACv2(nonce [32]byte, keys [][]byte) [32]byte {
	h := hmac.New(sha256.New, nonce[:])
	h.Write([]byte("starling dp roll v2\x00"))
	writeKeys(h, keys)
	return [32]byte(h.Sum(nil))
}

// rollHash is what they had before there was a key: SHA-256.
func rollHash(keys [][]byte) [32]byte {
	h := sha256.New()
	h.Write([]byte("starling dp roll v1\x00"))
	writeKeys(h, keys)
	return [32]byte(h.Sum(nil))
}

// writeKeys says each one's length first.
func writeKeys(h hash.Hash, keys [][]byte) {
	b := make([]byte, 0, 4096) // some at a time
	for _, k := range keys {
		if len(b) > 0 && len(b)+8+len(k) > cap(b) {
			h.Write(b)
			b = b[:0]
		}
		b = appendKey(b, k)
	}
	h.Write(b)
}

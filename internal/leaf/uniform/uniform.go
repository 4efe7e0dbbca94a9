// Package uniform draws whole numbers, and orders, without bias from a stream of bytes.
package uniform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrEmpty is a draw from nothing.
var ErrEmpty = errors.New("uniform: nothing to draw from")

// Shuffle puts x in a random order, every order with the same probability (Fisher and
// Yates). The error is rnd's; x is then in some order.
func Shuffle[T any](rnd io.Reader, x []T) error {
	for i := len(x) - 1; i > 0; i-- {
		j, err := Below(rnd, i+1)
		if err != nil {
			return err
		}
		x[i], x[j] = x[j], x[i]
	}
	return nil
}

// Below draws from 0..n-1, every number with the same probability. It reads 8
// bytes, little endian, and again where the 64-bit number is one of the lowest
// 2^64 mod n, which would favour small results. The error is rnd's, or ErrEmpty
// where n is not positive.
func Below(rnd io.Reader, n int) (int, error) {
	if n <= 0 {
		return 0, fmt.Errorf("%w: n = %d", ErrEmpty, n)
	}
	tooMany := -uint64(n) % uint64(n)
	for {
		var b [8]byte
		if _, err := io.ReadFull(rnd, b[:]); err != nil {
			return 0, fmt.Errorf("uniform: read randomness: %w", err)
		}
		if v := binary.LittleEndian.Uint64(b[:]); v >= tooMany {
			return int(v % uint64(n)), nil
		}
	}
}

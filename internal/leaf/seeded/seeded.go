// Package seeded is what generated data sets draw with: the same seed gives the same data.
package seeded

import (
	"math/rand/v2"
	"strings"
)

// Source is the generator behind every seeded choice of data sets: for data, never for protocol secrets.
func Source(seed uint64, stream ...uint64) *rand.Rand {
	var key [32]byte
	put := func(at int, v uint64) {
		for i := range 8 {
			key[at+i] ^= byte(v >> (8 * i))
		}
	}
	put(0, seed)
	for i, s := range stream {
		put(8*(1+i%3), s+uint64(i/3)<<56)
	}
	return rand.New(rand.NewChaCha8(key))
}

// Pick returns one element, each with the same probability.
func Pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// ProperName spells n in syllables of two letters, at least three of them.
// Different numbers get different names.
func ProperName(n uint64) string {
	const consonants, vowels = "bcdfghjklmnprstvwxyz", "aeiou"
	const base = uint64(len(consonants) * len(vowels))
	size, span := 3, base*base*base
	for n >= span {
		n -= span
		span *= base
		size++
	}
	// Multiplying by a unit modulo the span scatters neighbours.
	hi := n * 61 % span
	var b strings.Builder
	for range size {
		d := hi % base
		hi /= base
		b.WriteByte(consonants[d/uint64(len(vowels))])
		b.WriteByte(vowels[d%uint64(len(vowels))])
	}
	return b.String()
}

// Splits of what is generated, in the order of their numbers.
var Splits = []string{"train", "validation", "test"}

// PublicSplit is the split of those whom public text is of.
const PublicSplit = 3

package quant

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Scheme is a masked scheme: the set of integer symbols that a device may
// send for one coordinate, and the constants derived from it. Schemes are
// values; Lookup finds one by name. All constants are part of the wire
// contract: two sides that disagree on one decode different numbers.
type Scheme struct {
	spec *schemeSpec
}

// schemeSpec describes a scheme. One file registers each.
type schemeSpec struct {
	name string
	// symbols lists the symbols in ascending order; nil means every integer in
	// -q..q. It always holds 0: an absent device is exactly zero.
	symbols []int32
	q       int32   // largest magnitude of a symbol
	l       float64 // clipping point in standard deviations of a coordinate
	m, sd   float64 // mean and standard deviation of the squared symbol, see moments_test.go
	width   int     // fixed ring width in bits; 0 means as narrow as the shard allows
	about   string
}

var registry []*schemeSpec

// register is called by the file of each scheme while the package initialises.
func register(s schemeSpec) Scheme {
	registry = append(registry, &s)
	slices.SortFunc(registry, func(a, b *schemeSpec) int {
		if a.q != b.q {
			return int(a.q - b.q)
		}
		return strings.Compare(a.name, b.name)
	})
	return Scheme{registry[slices.IndexFunc(registry, func(r *schemeSpec) bool { return r.name == s.name })]}
}

// Lookup returns the masked scheme of that name: nf4, int5, int4, int3, tern,
// fixed16 or fixed32. The error wraps ErrUnknown.
func Lookup(name string) (Scheme, error) {
	for _, s := range registry {
		if s.name == name {
			return Scheme{s}, nil
		}
	}
	return Scheme{}, fmt.Errorf("%w: masked scheme %q (have %s)", ErrUnknown, name, strings.Join(SchemeNames(), ", "))
}

// SchemeNames lists the masked schemes, fewest symbols first.
func SchemeNames() []string {
	names := make([]string, len(registry))
	for i, s := range registry {
		names[i] = s.name
	}
	return names
}

// Name returns the name by which Lookup finds the scheme.
func (s Scheme) Name() string { return s.spec.name }

// About describes the symbols in a few words.
func (s Scheme) About() string { return s.spec.about }

// MaxSymbol returns Q: every symbol is in -Q..Q.
func (s Scheme) MaxSymbol() int32 { return s.spec.q }

// ClipPoint returns L: a coordinate is clipped at L standard deviations.
func (s Scheme) ClipPoint() float64 { return s.spec.l }

// Moments returns the mean m and standard deviation sd of the squared symbol
// of one coordinate of a vector with the full clip norm.
func (s Scheme) Moments() (m, sd float64) { return s.spec.m, s.spec.sd }

// Symbols returns the symbols in ascending order, or nil if they are all the
// integers in -MaxSymbol..MaxSymbol.
func (s Scheme) Symbols() []int32 { return slices.Clone(s.spec.symbols) }

// valid reports whether s came from Lookup.
func (s Scheme) valid() bool { return s.spec != nil }

// Width returns the bits of a coordinate in the ring that holds the sum of
// shard vectors: ceil(log2(2*shard*Q+1)), or the scheme's fixed width. The
// error wraps ErrRange if shard < 1, or if the sum needs more than the fixed
// width (or more than 32 bits).
func Width(s Scheme, shard int) (int, error) {
	if !s.valid() {
		return 0, fmt.Errorf("%w: the zero Scheme", ErrUnknown)
	}
	if shard < 1 || int64(shard) > MaxShard(s) {
		return 0, fmt.Errorf("%w: a shard of %d with scheme %s, must be 1..%d", ErrRange, shard, s.Name(), MaxShard(s))
	}
	if s.spec.width != 0 {
		return s.spec.width, nil
	}
	return bits.Len64(2 * uint64(shard) * uint64(s.spec.q)), nil
}

// MaxShard returns the largest number of devices whose sum fits the scheme's ring.
func MaxShard(s Scheme) int64 {
	width := s.spec.width
	if width == 0 {
		width = 32
	}
	return (int64(1)<<(width-1) - 1) / int64(s.spec.q)
}

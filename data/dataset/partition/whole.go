package partition

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/starling-fl/starling/internal/leaf/seeded"

	"github.com/starling-fl/starling/data/dataset"
)

// Owner names the person whose examples a split keeps together.
type Owner string

// The owners.
const (
	OwnerBoth     Owner = "user and provider" // whoever is linked by a user or a provider, however indirectly
	OwnerUser     Owner = "user"
	OwnerProvider Owner = "provider"
	OwnerGroup    Owner = "provider, or user where none is named" // Example.Group
)

// owners numbers each example's owner, from 0. An example that names none is
// one of its own.
func owners(s *dataset.Set, o Owner) (of []int, n int) {
	parent := make([]int, len(s.Examples)) // a forest over examples
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	first := map[[2]string]int{} // the first example that names a user or provider
	link := func(i int, kind, name string) {
		if name == "" {
			return
		}
		if j, seen := first[[2]string{kind, name}]; seen {
			parent[root(i)] = root(j)
		} else {
			first[[2]string{kind, name}] = i
		}
	}
	for i, e := range s.Examples {
		switch o {
		case OwnerBoth:
			link(i, "user", e.User)
			link(i, "provider", e.Provider)
		case OwnerUser:
			link(i, "user", e.User)
		case OwnerProvider:
			link(i, "provider", e.Provider)
		case OwnerGroup:
			link(i, "group", e.Group())
		}
	}
	number := map[int]int{}
	of = make([]int, len(parent))
	for i := range parent {
		r := root(i)
		if _, known := number[r]; !known {
			number[r] = len(number)
		}
		of[i] = number[r]
	}
	return of, len(number)
}

// ErrCoarse is a set with too few owners, or too unequal ones, for SplitWhole.
var ErrCoarse = errors.New("partition: too few owners to keep each in one part")

// SplitWhole divides a set at random into parts of about the given fractions
// so that no owner's examples are in two parts, and that no part behind the first has more than
// twice its fraction of the owners. Fractions must be positive and
// sum to 1. Where owners are so large that a part would differ from its
// fraction by more than 0.2 of the whole, or would be empty, it returns
// ErrCoarse.
func SplitWhole(s *dataset.Set, owner Owner, seed uint64, fractions ...float64) ([]*dataset.Set, error) {
	total := 0.0
	for i, f := range fractions {
		if !(f > 0) {
			return nil, fmt.Errorf("partition: fraction %d is %v, want a positive number", i+1, f)
		}
		total += f
	}
	if total < 1-1e-9 || total > 1+1e-9 {
		return nil, fmt.Errorf("partition: fractions sum to %v, want 1", total)
	}
	of, n := owners(s, owner)
	size := make([]int, n)
	for _, o := range of {
		size[o]++
	}
	// Owners come in random order, whatever their size; each goes where most room
	// is left.
	order := seeded.Source(seed, 0x52).Perm(n)
	room := make([]float64, len(fractions))
	for p, f := range fractions {
		room[p] = f * float64(len(s.Examples))
	}
	part, skewed := fill(order, size, room, nil)
	if most := bounds(n, fractions); skewed(most) {
		part, _ = fill(order, size, room, most)
	}
	parts := make([][]int, len(fractions))
	for i, o := range of {
		parts[part[o]] = append(parts[part[o]], i)
	}
	out := make([]*dataset.Set, len(parts))
	for p, indices := range parts {
		share := float64(len(indices)) / float64(len(s.Examples))
		if d := share - fractions[p]; len(indices) == 0 || d > 0.2 || d < -0.2 {
			return nil, fmt.Errorf("%w: %d of them, of %d examples", ErrCoarse, n, len(s.Examples))
		}
		shuffle(seeded.Source(seed, 0x53, uint64(p)), indices)
		out[p] = s.Pick(indices)
	}
	return out, nil
}

// fill puts each owner where most room is left, and where no more owners than most are; nil: any number.
// skewed reports whether a part behind the first has more owners than a bound.
func fill(order, size []int, room []float64, most []int) (part []int, skewed func(most []int) bool) {
	room = slices.Clone(room)
	count := make([]int, len(room))
	part = make([]int, len(size))
	for _, o := range order {
		best := 0
		for p := range room {
			if room[p] > room[best] && (most == nil || count[p] < most[p]) {
				best = p
			}
		}
		part[o] = best
		room[best] -= float64(size[o])
		count[best]++
	}
	return part, func(most []int) bool {
		for p := range count {
			if count[p] > most[p] {
				return true
			}
		}
		return false
	}
}

// bounds are the most owners of each part behind the first: twice its fraction. One owner who holds most
// examples fills the first part else, and nearly all others are held out.
func bounds(n int, fractions []float64) []int {
	most := make([]int, len(fractions))
	for p, f := range fractions {
		if most[p] = int(math.Ceil(2 * f * float64(n))); p == 0 {
			most[p] = n
		}
	}
	return most
}

func shuffle(rng *rand.Rand, v []int) {
	rng.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
}

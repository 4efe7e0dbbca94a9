package partition

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/starling-fl/starling/internal/leaf/seeded"

	"github.com/starling-fl/starling/data/dataset"
)

// Dirichlet spreads a set over clients so that each label's examples are
// divided in proportions drawn from Dirichlet(alpha, ..., alpha): the smaller
// alpha, the fewer labels a client sees (Hsu, Qi, Brown 2019). It returns the
// indices of each client's examples; every example goes to exactly one
// client, and a client may be left with none. alpha must be positive and
// finite, clients at least 1.
func Dirichlet(s *dataset.Set, clients int, alpha float64, seed uint64) ([][]int, error) {
	if clients < 1 {
		return nil, fmt.Errorf("partition: clients is %d, want at least 1", clients)
	}
	if !(alpha > 0) || math.IsInf(alpha, 0) {
		return nil, fmt.Errorf("partition: Dirichlet alpha is %v, want a positive number", alpha)
	}
	rng := seeded.Source(seed, 0xD1)
	byLabel := make([][]int, max(1, len(s.Labels))) // questions have none
	for i, ex := range s.Examples {
		byLabel[ex.Label] = append(byLabel[ex.Label], i)
	}
	out := make([][]int, clients)
	for _, members := range byLabel {
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		from, reached := 0, 0.0
		for c, share := range dirichlet(rng, clients, alpha) {
			reached += share
			to := int(math.Round(reached * float64(len(members))))
			if c == clients-1 {
				to = len(members)
			}
			to = min(max(to, from), len(members))
			out[c] = append(out[c], members[from:to]...)
			from = to
		}
	}
	for _, part := range out {
		rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	return out, nil
}

// dirichlet draws shares that sum to 1. It works with logarithms: at
// alpha = 0.01 the gamma variates underflow.
func dirichlet(rng *rand.Rand, n int, alpha float64) []float64 {
	logs := make([]float64, n)
	for i := range logs {
		logs[i] = logGamma(rng, alpha)
	}
	top := slices.Max(logs)
	total := 0.0
	for i, l := range logs {
		logs[i] = math.Exp(l - top)
		total += logs[i]
	}
	for i := range logs {
		logs[i] /= total
	}
	return logs
}

// logGamma draws the logarithm of a Gamma(shape, 1) variate (Marsaglia and
// Tsang 2000, with their boost U^(1/shape) for shape < 1).
func logGamma(rng *rand.Rand, shape float64) float64 {
	boost := 0.0
	if shape < 1 {
		boost = math.Log(1-rng.Float64()) / shape
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-rng.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return math.Log(d*v) + boost
		}
	}
}

// ByUser gives each user's examples to one client. Users are dealt out in
// random order; with more clients than users the rest stay empty. It returns
// an error if an example has no user.
func ByUser(s *dataset.Set, clients int, seed uint64) ([][]int, error) {
	return by(s, clients, seed, "user", func(e dataset.Example) string { return e.User })
}

// ByGroup is ByUser for Example.Group.
func ByGroup(s *dataset.Set, clients int, seed uint64) ([][]int, error) {
	return by(s, clients, seed, "provider and no user", dataset.Example.Group)
}

func by(s *dataset.Set, clients int, seed uint64, what string, key func(dataset.Example) string) ([][]int, error) {
	if clients < 1 {
		return nil, fmt.Errorf("partition: clients is %d, want at least 1", clients)
	}
	owners := map[string][]int{}
	var names []string
	for i, ex := range s.Examples {
		name := key(ex)
		if name == "" {
			return nil, fmt.Errorf("partition: example %d has no %s, so the set cannot be divided by it", i+1, what)
		}
		if owners[name] == nil {
			names = append(names, name)
		}
		owners[name] = append(owners[name], i)
	}
	slices.Sort(names)
	rng := seeded.Source(seed, 0xB1)
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	out := make([][]int, clients)
	for i, name := range names {
		out[i%clients] = append(out[i%clients], owners[name]...)
	}
	return out, nil
}

// FillEmpty gives each empty part of a partition one index of the largest part, and returns how
// many there were. It changes parts. With fewer indices than parts some stay empty.
func FillEmpty(parts [][]int) (filled int) {
	for i := range parts {
		if len(parts[i]) > 0 {
			continue
		}
		largest := 0
		for j := range parts {
			if len(parts[j]) > len(parts[largest]) {
				largest = j
			}
		}
		if from := parts[largest]; len(from) > 1 {
			parts[i] = []int{from[len(from)-1]}
			parts[largest] = from[:len(from)-1]
			filled++
		}
	}
	return filled
}

// Split divides a set at random into parts of the given fractions, label by
// label, so that rare labels reach every part. Fractions must be positive and
// sum to at most 1; what is over is left out.
func Split(s *dataset.Set, seed uint64, fractions ...float64) ([]*dataset.Set, error) {
	total := 0.0
	for i, f := range fractions {
		if !(f > 0) {
			return nil, fmt.Errorf("partition: fraction %d is %v, want a positive number", i+1, f)
		}
		total += f
	}
	if total > 1+1e-9 {
		return nil, fmt.Errorf("partition: fractions sum to %v, the limit is 1", total)
	}
	rng := seeded.Source(seed, 0x51)
	byLabel := make([][]int, max(1, len(s.Labels))) // questions have none
	for i, ex := range s.Examples {
		byLabel[ex.Label] = append(byLabel[ex.Label], i)
	}
	parts := make([][]int, len(fractions))
	for _, members := range byLabel {
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		from, reached := 0, 0.0
		for p, f := range fractions {
			reached += f
			to := min(int(math.Round(reached*float64(len(members)))), len(members))
			parts[p] = append(parts[p], members[from:to]...)
			from = to
		}
	}
	out := make([]*dataset.Set, len(parts))
	for i, part := range parts {
		rng.Shuffle(len(part), func(a, b int) { part[a], part[b] = part[b], part[a] })
		out[i] = s.Pick(part)
	}
	return out, nil
}

// Package forest classifies rows of numbers into two classes by a random forest (Breiman 2001), as
// scikit-learn's RandomForestClassifier does by default: trees grown on bootstrap samples until
// their leaves are pure, each split by Gini's impurity among a few random features. It is meant for
// a few hundred rows, and gives the same result for the same seed. [Grow] makes a forest,
// [Forest.Probability] uses it.
//
//	f, err := forest.Grow(rows, positive, forest.Config{})
//	...
//	p := f.Probability(row) // that row is positive
package forest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Config says how trees are grown.
type Config struct {
	Trees    int    // 0 means DefaultTrees
	Depth    int    // most splits from the root to a leaf; 0: no bound
	Leaf     int    // fewest rows of a leaf; 0 means 1
	Features int    // features that are tried for a split; 0: the square root of their number
	Seed     uint64 // of samples and features
	Whole    bool   // every tree sees all rows once, in place of a bootstrap sample
}

// DefaultTrees is scikit-learn's number.
const DefaultTrees = 100

// A Forest is a set of grown trees.
type Forest struct {
	trees    []tree
	features int
}

// A tree is its nodes, the root first.
type tree []node

type node struct {
	feature   int // -1: a leaf
	threshold float64
	low, high int     // nodes for values up to the threshold, and above it
	share     float64 // of a leaf's rows that are positive
}

// ErrRows is a set of rows that no forest can be grown on.
var ErrRows = errors.New("forest")

// Grow grows a forest on rows of equally many finite numbers and their classes.
func Grow(rows [][]float64, positive []bool, cfg Config) (*Forest, error) {
	if len(rows) == 0 || len(rows) != len(positive) || len(rows[0]) == 0 {
		return nil, fmt.Errorf("%w: %d rows and %d classes, want as many of both and at least one", ErrRows, len(rows), len(positive))
	}
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			return nil, fmt.Errorf("%w: row %d has %d numbers, the first %d", ErrRows, i, len(row), len(rows[0]))
		}
		for _, x := range row {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("%w: row %d has %v", ErrRows, i, x)
			}
		}
	}
	if cfg.Trees == 0 {
		cfg.Trees = DefaultTrees
	}
	cfg.Leaf = max(cfg.Leaf, 1)
	f := &Forest{features: len(rows[0])}
	if cfg.Features == 0 {
		cfg.Features = int(math.Sqrt(float64(f.features)))
	}
	cfg.Features = min(max(cfg.Features, 1), f.features)
	for t := range cfg.Trees {
		g := grower{Config: cfg, rows: rows, positive: positive, rng: rand.New(rand.NewPCG(cfg.Seed, uint64(t)))}
		sample := make([]int, len(rows))
		for i := range sample {
			if sample[i] = i; !cfg.Whole {
				sample[i] = g.rng.IntN(len(rows))
			}
		}
		g.grow(sample, 0)
		f.trees = append(f.trees, g.tree)
	}
	return f, nil
}

// Probability is the mean over the trees of the share of positive rows in the leaf that a row
// falls into.
func (f *Forest) Probability(row []float64) float64 {
	sum := 0.0
	for _, t := range f.trees {
		at := 0
		for t[at].feature >= 0 {
			if row[t[at].feature] <= t[at].threshold {
				at = t[at].low
			} else {
				at = t[at].high
			}
		}
		sum += t[at].share
	}
	return sum / float64(len(f.trees))
}

// grower grows one tree.
type grower struct {
	Config
	rows     [][]float64
	positive []bool
	rng      *rand.Rand
	tree     tree
}

// grow adds the node of a sample, and what is below it, and returns its number.
func (g *grower) grow(sample []int, depth int) int {
	at := len(g.tree)
	hits := g.count(sample)
	g.tree = append(g.tree, node{feature: -1, share: float64(hits) / float64(len(sample))})
	if hits == 0 || hits == len(sample) || g.Depth > 0 && depth >= g.Depth {
		return at
	}
	feature, threshold := g.split(sample)
	if feature < 0 {
		return at
	}
	var low, high []int
	for _, i := range sample {
		if g.rows[i][feature] <= threshold {
			low = append(low, i)
		} else {
			high = append(high, i)
		}
	}
	l, h := g.grow(low, depth+1), g.grow(high, depth+1)
	g.tree[at].feature, g.tree[at].threshold, g.tree[at].low, g.tree[at].high = feature, threshold, l, h
	return at
}

func (g *grower) count(sample []int) (hits int) {
	for _, i := range sample {
		if g.positive[i] {
			hits++
		}
	}
	return hits
}

// split is the best split among some of the features; -1 if there is none. Features all of
// whose values are one do not count among those that are tried.
func (g *grower) split(sample []int) (feature int, threshold float64) {
	best := math.Inf(1)
	feature = -1
	order := slices.Clone(sample)
	all, tried := float64(g.count(sample)), 0
	for _, f := range g.rng.Perm(len(g.rows[0])) {
		if tried == g.Features {
			break
		}
		slices.SortFunc(order, func(a, b int) int {
			switch x, y := g.rows[a][f], g.rows[b][f]; {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		if g.rows[order[0]][f] == g.rows[order[len(order)-1]][f] {
			continue
		}
		tried++
		hits, n := 0.0, float64(len(order))
		for k := 1; k < len(order); k++ {
			if g.positive[order[k-1]] {
				hits++
			}
			left, right := g.rows[order[k-1]][f], g.rows[order[k]][f]
			if left == right || k < g.Leaf || len(order)-k < g.Leaf {
				continue
			}
			low := float64(k)
			// The impurity of both sides, weighted, but for a factor of 2 over the rows.
			impurity := hits*(low-hits)/low + (all-hits)*(n-low-(all-hits))/(n-low)
			if impurity < best {
				best, feature, threshold = impurity, f, left/2+right/2
				if threshold >= right { // of neighbours among the floats
					threshold = left
				}
			}
		}
	}
	return feature, threshold
}

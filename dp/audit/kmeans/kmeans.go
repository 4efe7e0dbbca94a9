// Package kmeans divides points into two clusters by Lloyd's algorithm, starting from k-means++
// (Arthur and Vassilvitskii 2007), and takes the best of several starts.
//
//	c, err := kmeans.Cluster(points, seed)
package kmeans

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
)

// Starts is the number of starts; the one whose points are closest to their centres counts.
const Starts = 10

// mostRounds bounds one start; a few dozen points settle in a handful.
const mostRounds = 300

// Clusters are two centres and the points nearest to each.
type Clusters struct {
	Centres [2][]float64
	Of      []int   // by point: 0 or 1
	Inertia float64 // sum of the squared distances to the points' centres
}

// ErrPoints is a set of points that cannot be divided.
var ErrPoints = errors.New("kmeans: want at least two points of as many finite numbers each")

// Cluster divides points into two clusters.
func Cluster(points [][]float64, seed uint64) (best Clusters, err error) {
	if len(points) < 2 {
		return best, ErrPoints
	}
	for _, p := range points {
		if len(p) == 0 || len(p) != len(points[0]) || slices.ContainsFunc(p, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
			return best, ErrPoints
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0x6b6d))
	best.Inertia = math.Inf(1)
	for range Starts {
		first := points[rng.IntN(len(points))]
		if c := Lloyd(points, [2][]float64{first, far(points, first, rng)}); c.Inertia < best.Inertia {
			best = c
		}
	}
	return best, nil
}

// far draws a point by its squared distance to another.
func far(points [][]float64, from []float64, rng *rand.Rand) []float64 {
	total := 0.0
	for _, p := range points {
		total += Distance(p, from)
	}
	at := rng.Float64() * total
	for _, p := range points {
		if at -= Distance(p, from); at < 0 {
			return p
		}
	}
	return points[rng.IntN(len(points))] // all are one
}

// Lloyd moves two centres until no reassignment of a point improves them. A cluster without points
// keeps its centre.
func Lloyd(points [][]float64, centres [2][]float64) Clusters {
	c := Clusters{Centres: centres, Of: make([]int, len(points))}
	for i := range c.Of {
		c.Of[i] = -1
	}
	for range mostRounds {
		moved := false
		c.Inertia = 0
		for i, p := range points {
			d := [2]float64{Distance(p, c.Centres[0]), Distance(p, c.Centres[1])}
			at := 0
			if d[1] < d[0] {
				at = 1
			}
			moved = moved || c.Of[i] != at
			c.Of[i] = at
			c.Inertia += d[at]
		}
		if !moved {
			break
		}
		for k := range c.Centres {
			mean, n := make([]float64, len(points[0])), 0.0
			for i, p := range points {
				if c.Of[i] == k {
					n++
					for j, x := range p {
						mean[j] += x
					}
				}
			}
			if n == 0 {
				continue
			}
			for j := range mean {
				mean[j] /= n
			}
			c.Centres[k] = mean
		}
	}
	return c
}

// Distance is the square of the Euclidean distance.
func Distance(a, b []float64) (d float64) {
	for i, x := range a {
		d += (x - b[i]) * (x - b[i])
	}
	return d
}

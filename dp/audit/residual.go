package audit

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// strides are the remainders by which coordinates are looked at together.
var strides = [...]int{2, 3, 4, 5, 7, 8}

const (
	blocks    = 16 // of the values, one behind the other
	lags      = 4  // rounds before, and coordinates before, that noise is held against
	leastPair = 1000
	heads     = 256  // coordinates by which all other rounds are held against one another
	mostHeads = 1000 // rounds
)

// squares is a number of squares of standard Gaussians, or of products of two, and their sum.
type squares struct {
	n   int
	sum float64
}

func (s *squares) add(x float64) { s.n, s.sum = s.n+1, s.sum+x }

// residuals collect the noise of rounds over the standard deviation that the ledger says. Each
// number has a uniform one in -1/2..1/2 added, which makes whole numbers smooth.
type residuals struct {
	dither *rand.Rand
	rounds int
	all    squares
	each   []squares // by coordinate
	sets   [len(strides)][8]squares
	parts  [blocks + 1]squares // the last: the clipping count and the figures

	round   float64     // the least p-value of one round's variance
	before  [][]float32 // the last rounds of this run, the newest first
	heads   [][]float32 // the first coordinates of the rounds before those
	pairs   int         // of rounds
	largest float64     // of their |z|
	sum     float64     // of their z
	lagged  [lags]squares
}

func newResiduals(seed uint64) *residuals {
	return &residuals{round: 1, dither: rand.New(rand.NewPCG(seed, 0x7265))}
}

// newRun forgets the rounds before: the next one is of another run.
func (r *residuals) newRun() { r.before, r.heads = nil, nil }

// add takes the noise of a round, of the variance that the ledger has. The first d coordinates are
// values.
func (r *residuals) add(noise []int64, d int, variance float64) {
	scale := 1 / math.Sqrt(variance+1./12)
	u := make([]float32, len(noise))
	var own squares
	for len(r.each) < len(noise) {
		r.each = append(r.each, squares{})
	}
	for i, x := range noise {
		v := (float64(x) + r.dither.Float64() - 0.5) * scale
		u[i] = float32(v)
		r.all.add(v * v)
		own.add(v * v)
		r.each[i].add(v * v)
		for k, of := range strides {
			r.sets[k][i%of].add(v * v)
		}
		part := blocks
		if i < d {
			part = blocks * i / d
		}
		r.parts[part].add(v * v)
		for lag := 1; lag <= min(lags, i); lag++ {
			r.lagged[lag-1].add(float64(u[i]) * float64(u[i-lag]))
		}
	}
	r.rounds++
	r.round = min(r.round, chi2(own.n, own.sum))
	for _, old := range append(r.before[:len(r.before):len(r.before)], r.heads...) {
		dot, norm := 0.0, 0.0
		for i := range min(len(old), len(u)) {
			dot += float64(old[i]) * float64(u[i])
			norm += float64(old[i]) * float64(old[i])
		}
		z := dot / math.Sqrt(max(norm, 1e-300)) // given the older round's, a standard Gaussian
		r.pairs++
		r.largest, r.sum = max(r.largest, math.Abs(z)), r.sum+z
	}
	if len(r.before) == lags && len(r.heads) < mostHeads {
		last := r.before[lags-1]
		r.heads = append(r.heads, append([]float32{}, last[:min(len(last), heads)]...))
	}
	r.before = append([][]float32{u}, r.before[:min(len(r.before), lags-1)]...)
}

// checks are those of the noise.
func (r *residuals) checks() []Check {
	if r.rounds == 0 {
		var out []Check
		for _, name := range []string{CheckNoise, CheckCoordinates, CheckRounds, CheckWithin} {
			out = append(out, skipped(name, "no round was released with a sum whose noise is known"))
		}
		return out
	}
	low, high := ratios(r.all.n, checkLevel)
	out := []Check{
		within(CheckNoise, fmt.Sprintf("its variance over the ledger's, of %d coordinates in %d rounds", len(r.each), r.rounds),
			r.all.sum/float64(r.all.n), low, high, checkLevel),
		r.byCoordinate(), r.byRound(),
	}
	p, tried := 1.0, 0
	for _, s := range r.lagged {
		if s.n >= leastPair {
			tried++
			p = min(p, normal(s.sum/math.Sqrt(float64(s.n))))
		}
	}
	if tried == 0 {
		return append(out, skipped(CheckWithin, fmt.Sprintf("%d coordinates in all, must be at least %d", r.all.n, leastPair)))
	}
	return append(out, likely(CheckWithin,
		fmt.Sprintf("least p-value of the correlation with each of %d coordinates before", tried), p, tried, checkLevel))
}

// ratios are the ends of the range in which the mean of n squares is, but with probability level.
func ratios(n int, level float64) (low, high float64) {
	find := func(in, out float64) float64 {
		for range 60 {
			if mid := (in + out) / 2; chi2(n, mid*float64(n)) >= level {
				in = mid
			} else {
				out = mid
			}
		}
		return out
	}
	return find(1, 0), find(1, 2+100/float64(n))
}

// byCoordinate finds the least likely coordinate, round, or set of coordinates: every n-th, a part,
// the extra ones.
func (r *residuals) byCoordinate() Check {
	p, tried := r.round, len(r.each)+r.rounds
	// Of coordinates that were in as many rounds, the ends alone.
	least, most := map[int]float64{}, map[int]float64{}
	for _, s := range r.each {
		if x, ok := least[s.n]; !ok || s.sum < x {
			least[s.n] = s.sum
		}
		most[s.n] = max(most[s.n], s.sum)
	}
	for n, x := range least {
		p = min(p, chi2(n, x), chi2(n, most[n]))
	}
	for _, s := range r.parts {
		if s.n > 0 {
			p, tried = min(p, chi2(s.n, s.sum)), tried+1
		}
	}
	for _, set := range r.sets {
		for _, s := range set {
			if s.n > 0 {
				p, tried = min(p, chi2(s.n, s.sum)), tried+1
			}
		}
	}
	return likely(CheckCoordinates, fmt.Sprintf("least p-value of the variance, of %d coordinates, %d rounds and %d sets",
		len(r.each), r.rounds, tried-len(r.each)-r.rounds), p, tried, checkLevel)
}

// byRound holds rounds against those before them, each pair and all together.
func (r *residuals) byRound() Check {
	if r.pairs == 0 {
		return skipped(CheckRounds, "no two rounds of one run to compare")
	}
	p := min(normal(r.largest), normal(r.sum/math.Sqrt(float64(r.pairs))))
	return likely(CheckRounds, fmt.Sprintf("least p-value of the correlation, of %d pairs of rounds and of all", r.pairs),
		p, r.pairs+1, checkLevel)
}

package accounting

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/dp"
)

// ErrSearch reports a distribution of runs that does not exist, or is of no use.
var ErrSearch = errors.New("bad search")

// A Search is a random number K of runs of one private training. Each run has settings picked at
// random from a fixed list; the best result is released and all others are thrown away (Papernot,
// Steinke 2022, "Hyperparameter Tuning with Renyi Differential Privacy", the reference for all of
// this file). That costs more privacy than one run and far less than composing all of them,
// provided that K depends on nothing that was seen: it is drawn first, and then all K runs are
// made.
//
// The best may be chosen by anything that the runs released, and by data whose owners are not
// protected, such as validation data that no member holds.
type Search struct {
	// Poisson has K ~ Poisson(Mean): no run at all may be drawn, and then nothing is
	// released. Else K >= 1 is truncated negative binomial with Shape and a Gamma that
	// gives it that mean (definition 1).
	Poisson bool    `json:"poisson,omitempty"`
	Shape   float64 `json:"shape"` // eta > -1; 0: the logarithmic distribution, 1: the geometric one
	Gamma   float64 `json:"gamma,omitempty"`
	Mean    float64 `json:"mean"` // E[K]
}

const (
	// maxSearchMean bounds E[K].
	maxSearchMean = 10_000
	// maxSearchShape bounds eta. From there on the distribution is Poisson's, nearly.
	maxSearchShape = 1e4
	leastGamma     = 1e-9
)

// Names of distributions; any other shape is "negative-binomial:ETA:MEAN".
const (
	searchPoisson     = "poisson"
	searchGeometric   = "geometric"
	searchLogarithmic = "logarithmic"
	searchNegative    = "negative-binomial"
)

// ParseSearch reads "poisson:MEAN", "geometric:MEAN", "logarithmic:MEAN" or
// "negative-binomial:ETA:MEAN".
func ParseSearch(text string) (Search, error) {
	fields := strings.Split(text, ":")
	bad := func() (Search, error) {
		return Search{}, fmt.Errorf("accounting: %.60q, want %s:MEAN, %s:MEAN, %s:MEAN or %s:ETA:MEAN, MEAN being the expected number of runs: %w",
			text, searchPoisson, searchGeometric, searchLogarithmic, searchNegative, ErrSearch)
	}
	numbers := make([]float64, len(fields)-1)
	for i, f := range fields[1:] {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return bad()
		}
		numbers[i] = v
	}
	switch {
	case fields[0] == searchPoisson && len(numbers) == 1:
		s := Search{Poisson: true, Mean: numbers[0]}
		return s, s.check()
	case fields[0] == searchGeometric && len(numbers) == 1:
		return NewSearch(1, numbers[0])
	case fields[0] == searchLogarithmic && len(numbers) == 1:
		return NewSearch(0, numbers[0])
	case fields[0] == searchNegative && len(numbers) == 2:
		return NewSearch(numbers[0], numbers[1])
	}
	return bad()
}

// String returns the text that ParseSearch reads.
func (s Search) String() string {
	mean := strconv.FormatFloat(s.Mean, 'g', -1, 64)
	switch {
	case s.Poisson:
		return searchPoisson + ":" + mean
	case s.Shape == 0:
		return searchLogarithmic + ":" + mean
	case s.Shape == 1:
		return searchGeometric + ":" + mean
	}
	return searchNegative + ":" + strconv.FormatFloat(s.Shape, 'g', -1, 64) + ":" + mean
}

// NewSearch is the truncated negative binomial of a shape and mean.
func NewSearch(shape, mean float64) (Search, error) {
	s := Search{Shape: shape, Mean: mean, Gamma: 0.5}
	if err := s.inRange(); err != nil {
		return Search{}, err
	}
	lo, hi := math.Log(leastGamma), 0.0 // the mean falls from lo to 1 at hi
	if meanAt(shape, leastGamma) < mean {
		return Search{}, fmt.Errorf("accounting: shape %v cannot have a mean of %v runs: give a larger shape, or fewer runs: %w", shape, mean, ErrSearch)
	}
	for range 200 {
		if mid := (lo + hi) / 2; meanAt(shape, math.Exp(mid)) > mean {
			lo = mid
		} else {
			hi = mid
		}
	}
	s.Gamma = math.Exp(lo) // whose mean is not below
	return s, nil
}

// check holds the mean to what shape and gamma have: else epsilon would be another search's.
func (s Search) check() error {
	if err := s.inRange(); err != nil || s.Poisson {
		return err
	}
	if has := meanAt(s.Shape, s.Gamma); !(math.Abs(has/s.Mean-1) < 1e-6) {
		return fmt.Errorf("accounting: shape %v and gamma %v have a mean of %v runs, which is said to be %v: %w", s.Shape, s.Gamma, has, s.Mean, ErrSearch)
	}
	return nil
}

func (s Search) inRange() error {
	switch {
	case !(s.Mean >= 1 && s.Mean <= maxSearchMean) || !s.Poisson && s.Mean == 1:
		return fmt.Errorf("accounting: a mean of %v runs, want above 1 and at most %d (%s takes 1): %w", s.Mean, maxSearchMean, searchPoisson, ErrSearch)
	case s.Poisson:
		return nil
	case !(s.Shape > -1 && s.Shape <= maxSearchShape):
		return fmt.Errorf("accounting: a shape of %v, want above -1 and at most %g: %w", s.Shape, maxSearchShape, ErrSearch)
	case !(s.Gamma > 0 && s.Gamma < 1):
		return fmt.Errorf("accounting: gamma is %v, want in (0, 1): NewSearch finds it: %w", s.Gamma, ErrSearch)
	}
	return nil
}

// meanAt is E[K] of the truncated negative binomial.
func meanAt(shape, gamma float64) float64 {
	l := -math.Log(gamma)
	if x := shape * l; math.Abs(x) > 1e-9 {
		// shape*(1-gamma) / (gamma*(1-gamma^shape))
		return shape * (1 - gamma) / (gamma * -math.Expm1(-x))
	}
	return (1/gamma - 1) / l
}

// Draw draws K.
func (s Search) Draw(random io.Reader) (int, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return 0, fmt.Errorf("accounting: number of runs: %w", err)
	}
	return s.Quantile(float64(binary.LittleEndian.Uint64(b[:])>>11) * 0x1p-53), nil
}

// Quantile is the least k for which P[K <= k] is above u, in [0, 1).
func (s Search) Quantile(u float64) int {
	const most = 1 << 26 // of probability far below what u tells apart
	k, logP := 0, -s.Mean
	if !s.Poisson {
		k = 1
		switch l := -math.Log(s.Gamma); {
		case s.Shape == 0:
			logP = math.Log((1 - s.Gamma) / l)
		default: // (1-gamma)*shape / (gamma^-shape - 1), which overflows
			logP = math.Log1p(-s.Gamma) + math.Log(s.Shape/math.Expm1(s.Shape*l))
			if s.Shape*l > 600 {
				logP = math.Log1p(-s.Gamma) + math.Log(s.Shape) - s.Shape*l
			}
		}
	}
	sum := math.Exp(logP)
	for sum <= u && k < most {
		if s.Poisson {
			logP += math.Log(s.Mean / float64(k+1))
		} else {
			logP += math.Log((float64(k)+s.Shape)/float64(k+1)) + math.Log1p(-s.Gamma)
		}
		k++
		p := math.Exp(logP)
		if sum += p; p < 1e-18 && float64(k) > s.Mean {
			break // u is closer to 1 than float64 adds up
		}
	}
	return k
}

// Guarantee is the epsilon of the whole search at the budget's delta, by the Rényi accountant, if
// each run has the given events. simulated asks for the guarantee of the population that the job
// simulates. A cohort below its floor in any run is counted for all of them.
func (s Search) Guarantee(b Budget, events []dp.Event, simulated bool) (dp.Guarantee, error) {
	if err := s.check(); err != nil {
		return dp.Guarantee{}, err
	}
	left := b.Delta - s.Mean*b.Floor
	if left < b.Delta/2 {
		return dp.Guarantee{}, fmt.Errorf("accounting: floors have %.3g of a delta of %.3g in each run, too much in %v of them: want fewer runs, or larger cohorts: %w",
			b.Floor, b.Delta, s.Mean, ErrSearch)
	}
	if _, err := dp.CheckDelta(left, 0); err != nil {
		return dp.Guarantee{}, err
	}
	c, err := dp.Compose(events, dp.View{Simulated: simulated})
	if err != nil {
		return dp.Guarantee{}, err
	}
	g, _, err := c.RDP(left)
	if err != nil || len(c.Parts) == 0 {
		return g, err
	}
	g.Epsilon, g.RDPOrder = dp.BestOrder(c.IntegerOnly, s.over(c.Divergence, c.IntegerOnly, left))
	g.RDPEpsilon = g.Epsilon
	if math.IsInf(g.Epsilon, 1) {
		return dp.Guarantee{}, fmt.Errorf("accounting: no finite epsilon at delta %v over %v runs", left, s.Mean)
	}
	if b.Floor > 0 {
		g = g.Floored(b.Delta)
	}
	return g, nil
}

// over is the epsilon at delta that each order of the search's divergence yields, where a
// single run's is that.
func (s Search) over(single func(a float64) float64, integerOnly bool, delta float64) func(a float64) float64 {
	if s.Poisson {
		single = tabled(single)
		return func(a float64) float64 {
			return dp.RDPToEpsilon(s.poissonAt(single, integerOnly, a), a, delta)
		}
	}
	// Theorem 2 with the order of its second term that makes it least.
	extra, _ := dp.BestOrder(integerOnly, func(a float64) float64 {
		return (1+s.Shape)*(1-1/a)*single(a) - (1+s.Shape)*math.Log(s.Gamma)/a
	})
	return func(a float64) float64 {
		return dp.RDPToEpsilon(single(a)+extra+math.Log(s.Mean)/(a-1), a, delta)
	}
}

// poissonAt is theorem 6: a single run is (eps, delta)-private with the largest eps that
// the order allows.
func (s Search) poissonAt(single func(a float64) float64, integerOnly bool, a float64) float64 {
	eps := math.Log1p(1 / (a - 1))
	logDelta, _ := dp.BestOrder(integerOnly, func(b float64) float64 { return logDeltaOf(single(b), b, eps) })
	return single(a) + s.Mean*math.Exp(min(0, logDelta)) + math.Log(s.Mean)/(a-1)
}

// logDeltaOf is the logarithm of the delta at eps of a Renyi divergence rho of order a: the
// conversion of rdpToEpsilon, turned around.
func logDeltaOf(rho, a, eps float64) float64 {
	return (a-1)*(rho-eps+math.Log1p(-1/a)) - math.Log(a)
}

// tabled asks f once for each order: orders on the way to a minimum are the same again.
func tabled(f func(float64) float64) func(float64) float64 {
	known := map[float64]float64{}
	return func(a float64) float64 {
		v, ok := known[a]
		if !ok {
			v = f(a)
			known[a] = v
		}
		return v
	}
}

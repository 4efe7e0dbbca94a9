package report

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// What a table may say of paired differences:
//
//   - Differences are taken seed by seed. Fewer than leastSeeds of them, or such as are all
//     the same (an exact tie among them), are not tested: a t statistic of three values has
//     no power, and one without spread is none.
//   - Intervals are Student's, 95 %, or with ten seeds or more, where asked, bootstrap BCa
//     (Efron 1987). They are of one difference each, uncorrected.
//   - A verdict is by p values of t tests, corrected over all claims of a table by Holm 1979,
//     so that the chance that any verdict of a table is wrong is at most 5 %.
const (
	leastSeeds = 5
	leastBCa   = 10
	level      = 0.05
)

// Interval names the method of a mean's 95 % interval.
type Interval string

const (
	IntervalT   Interval = "t"
	IntervalBCa Interval = "bca" // with at least ten seeds; t with fewer
)

// ParseInterval parses the name of an interval.
func ParseInterval(s string) (Interval, error) {
	if i := Interval(s); i == IntervalT || i == IntervalBCa {
		return i, nil
	}
	return "", fmt.Errorf("report: interval is %.40q, must be %s or %s", s, IntervalT, IntervalBCa)
}

// testable says why differences are not tested; "" if they are.
func testable(d []float64) string {
	for _, x := range d {
		if x-x != 0 {
			return "a run has no figure"
		}
	}
	switch {
	case len(d) < leastSeeds:
		return fmt.Sprintf("%d seeds, %d are needed", len(d), leastSeeds)
	case slices.MaxFunc(d, byMagnitude) == 0:
		return "both sides are equal within rounding"
	case summarize(d).SD <= rounding*math.Abs(slices.MaxFunc(d, byMagnitude)):
		return "the same in every seed"
	}
	return ""
}

func byMagnitude(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) }

// student is the t distribution for n differences.
func student(n int) distuv.StudentsT { return distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)} }

// of is the interval of the mean; it has no width where there is one value, or no spread.
func (i Interval) of(d []float64) (low, high float64) {
	s := summarize(d)
	if s.N < 2 || s.SD == 0 {
		return s.Mean, s.Mean
	}
	if i == IntervalBCa && s.N >= leastBCa {
		return bca(d)
	}
	half := student(s.N).Quantile(0.975) * s.SD / math.Sqrt(float64(s.N))
	return s.Mean - half, s.Mean + half
}

// below is the p value of the hypothesis that the mean is at a bound or above it: small
// where it is below. d must be testable.
func below(d []float64, bound float64) float64 {
	s := summarize(d)
	return student(s.N).CDF((s.Mean - bound) / (s.SD / math.Sqrt(float64(s.N))))
}

// power is the chance with which a design tells an effect that it is said to detect.
const power = 0.8

// detectable is the smallest effect, in the units of d, that a test with differences like d tells with a chance of
// [power], at the strictest level that Holm's correction gives one of m claims. It adds two quantiles of Student's t,
// the usual approximation of the noncentral t.
func detectable(d []float64, m int) float64 {
	s := summarize(d)
	return deviations(s.N, m) * s.SD
}

// deviations is detectable in standard deviations of n differences.
func deviations(n, m int) float64 {
	t := student(n)
	return (t.Quantile(1-level/2/float64(m)) + t.Quantile(power)) / math.Sqrt(float64(n))
}

// holm corrects the p values of one family (Holm 1979): each, from the smallest on, times
// the number of those that are left, and no smaller than the one before.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out, least := make([]float64, len(p)), 0.0
	for k, i := range order {
		least = max(least, min(1, p[i]*float64(len(p)-k)))
		out[i] = least
	}
	return out
}

// resamples of the bootstrap: enough that the interval's ends do not move in the
// digits that are printed.
const resamples = 20_000

// bca is the 95 % bias-corrected and accelerated bootstrap interval of the mean (Efron
// 1987). Its draws are fixed, so that a report is made the same twice.
func bca(x []float64) (low, high float64) {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], uint64(len(x)))
	rng := rand.New(rand.NewChaCha8(key))
	mean, under := summarize(x).Mean, 0.0
	means := make([]float64, resamples)
	for i := range means {
		for range x {
			means[i] += x[rng.IntN(len(x))]
		}
		means[i] /= float64(len(x))
		switch {
		case means[i] < mean:
			under++
		case means[i] == mean: // half, as SciPy counts ties
			under += 0.5
		}
	}
	slices.Sort(means)
	// The mean of all but one value lies (mean - x) / (n-1) from the mean.
	squares, cubes := 0.0, 0.0
	for _, v := range x {
		squares, cubes = squares+(v-mean)*(v-mean), cubes+math.Pow(v-mean, 3)
	}
	acceleration := cubes / (6 * math.Pow(squares, 1.5))
	z0 := distuv.UnitNormal.Quantile(min(max(under, 0.5), resamples-0.5) / resamples)
	end := func(p float64) float64 {
		z := z0 + distuv.UnitNormal.Quantile(p)
		at := distuv.UnitNormal.CDF(z0 + z/(1-acceleration*z))
		return means[min(max(int(math.Floor(at*resamples)), 0), resamples-1)]
	}
	return end(0.025), end(0.975)
}

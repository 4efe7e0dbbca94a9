package audit

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// A Check holds one property of the rounds that were played against what the job's ledger rests on.
// The audit knows every exact sum, and so the noise. Its statistics, its accountant and its count of
// rounds share no code with those that it checks.
type Check struct {
	Name      string  `json:"check"`
	Statistic string  `json:"statistic"` // what Value is
	Value     float64 `json:"value"`
	Low       float64 `json:"low"` // Value must be within Low..High
	High      float64 `json:"high"`
	// Alarm bounds the probability that a sound job fails the check; 0 where no chance is in it.
	Alarm   float64 `json:"alarm"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"` // it was not tested, or what was wrong
}

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	Holds     Verdict = "holds"
	Flawed    Verdict = "FLAWED"
	NotTested Verdict = "not tested"
)

// FalseAlarms bounds the probability that any check calls a sound job flawed. Each of the checks
// with chance in them has an equal share (Bonferroni), which it divides among all that it looks at.
const FalseAlarms = 5e-4

// chances is the number of checks with chance in them.
const chances = 9

const checkLevel = FalseAlarms / chances

// The names of the checks.
const (
	CheckNoise       = "noise, in all"
	CheckCoordinates = "noise, by coordinate"
	CheckRounds      = "noise, between rounds"
	CheckWithin      = "noise, within a round"
	CheckOwn         = "devices' own noise"
	CheckDecoded     = "released after the noise"
	CheckSize        = "size of cohorts"
	CheckMembers     = "members of cohorts"
	CheckOverlap     = "cohorts, between rounds"
	CheckHits        = "hits"
	CheckNorm        = "norm of an extremal device"
	CheckCharged     = "rounds charged"
	CheckLedger      = "ledger, composed again"
)

// within makes the check of a value that must be in a range.
func within(name, statistic string, value, low, high, alarm float64) Check {
	c := Check{Name: name, Statistic: statistic, Verdict: Holds, Alarm: alarm}
	c.Value, c.Low, c.High = finite(value), finite(low), finite(high)
	if !(value >= low && value <= high) {
		c.Verdict = Flawed
	}
	return c
}

// finite is a value as JSON can hold it.
func finite(x float64) float64 {
	if math.IsNaN(x) {
		return -math.MaxFloat64
	}
	return min(max(x, -math.MaxFloat64), math.MaxFloat64)
}

// likely makes the check of the least of so many p-values, all of which hold at once.
func likely(name, statistic string, least float64, of int, level float64) Check {
	return within(name, statistic, least, level/float64(max(1, of)), 1, level)
}

// skipped is a check that this job, or this audit of it, has nothing for.
func skipped(name, why string) Check { return Check{Name: name, Verdict: NotTested, Why: why} }

// The distributions, two-sided: the probability of a value as far out as this.

// chi2 is that of a sum of n squares of standard Gaussians.
func chi2(n int, sum float64) float64 {
	a, x := float64(n)/2, max(0, sum)/2
	return min(1, 2*min(mathext.GammaIncReg(a, x), mathext.GammaIncRegComp(a, x)))
}

// normal is that of a standard Gaussian.
func normal(z float64) float64 { return math.Erfc(math.Abs(z) / math.Sqrt2) }

// binomialOut is that of k successes in n trials of probability p.
func binomialOut(n, k int, p float64) float64 {
	switch {
	case p <= 0 || p >= 1:
		if (p <= 0) == (k == 0) && (p >= 1) == (k == n) {
			return 1
		}
		return 0
	}
	return min(1, 2*min(atMost(n, k, p), atLeast(n, k, p)))
}

// atMost and atLeast are the tails of a binomial.
func atMost(n, k int, p float64) float64 {
	if k >= n {
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
}

func atLeast(n, k int, p float64) float64 {
	if k <= 0 {
		return 1
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// rateAtLeast is the one-sided bound of Clopper and Pearson: of k successes in n trials their
// probability is at least this, but with the given chance.
func rateAtLeast(n, k int, level float64) float64 {
	if k == 0 {
		return 0
	}
	return mathext.InvRegIncBeta(float64(k), float64(n-k+1), level)
}

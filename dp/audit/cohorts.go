package audit

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
)

// cohorts collect who was drawn, before anybody was left out.
type cohorts struct {
	j       job.Job
	rounds  int
	drawn   int     // in all rounds
	size    float64 // the least p-value of a round's size
	times   []int32 // how often each member was drawn, in this run
	runs    int     // rounds of this run
	member  float64 // the least p-value of a member's times
	members int
	before  [][]int // the last cohorts of this run, the newest first
	overlap float64 // the least p-value of what a round and one of the four before have in common
	pairs   int
	wrong   string // what no coin can have made
}

func newCohorts(j job.Job) *cohorts { return &cohorts{j: j, size: 1, member: 1, overlap: 1} }

// add takes a drawn cohort, ascending.
func (c *cohorts) add(cohort []int) {
	n, q := c.j.Cohort.Population, c.j.Cohort.SamplingRate
	if len(c.times) < n {
		c.times = make([]int32, n)
	}
	for i, m := range cohort {
		if m < 0 || m >= n || i > 0 && m <= cohort[i-1] {
			c.wrong = fmt.Sprintf("round %d drew member %d of %d, or one twice", c.rounds+1, m, n)
			return
		}
		c.times[m]++
	}
	c.rounds, c.runs, c.drawn = c.rounds+1, c.runs+1, c.drawn+len(cohort)
	switch fixed := c.j.Cohort.Size; {
	case c.j.Fixed() && len(cohort) != fixed:
		c.wrong = fmt.Sprintf("round %d drew %d members, not cohort.size = %d", c.rounds, len(cohort), fixed)
	case !c.j.Fixed():
		c.size = min(c.size, binomialOut(n, len(cohort), q))
	}
	if c.rate() < 1 {
		for _, old := range c.before {
			c.pairs++
			c.overlap = min(c.overlap, c.common(old, cohort))
		}
		c.before = append([][]int{slices.Clone(cohort)}, c.before[:min(len(c.before), lags-1)]...)
	}
}

// rate is the chance of a member of being in a round.
func (c *cohorts) rate() float64 {
	if c.j.Fixed() {
		return float64(c.j.Cohort.Size) / float64(c.j.Cohort.Population)
	}
	return c.j.Cohort.SamplingRate
}

// common is the p-value of the number of members that a cohort has of an older one: given both
// sizes, every set of the size is as likely.
func (c *cohorts) common(old, cohort []int) float64 {
	both := 0
	for _, m := range cohort {
		if _, ok := slices.BinarySearch(old, m); ok {
			both++
		}
	}
	n, k := len(old), len(cohort)
	below, above := 0.0, 0.0
	for x := max(0, n+k-c.j.Cohort.Population); x <= min(n, k); x++ {
		p := dp.Hypergeometric(c.j.Cohort.Population, n, k, x)
		if x <= both {
			below += p
		}
		if x >= both {
			above += p
		}
	}
	return min(1, 2*min(below, above))
}

// newRun ends a run of the job: the next has other coins.
func (c *cohorts) newRun() {
	least, most := int32(math.MaxInt32), int32(-1)
	for _, k := range c.times {
		least, most = min(least, k), max(most, k)
	}
	if c.runs > 0 && most >= 0 {
		c.member = min(c.member, binomialOut(c.runs, int(least), c.rate()), binomialOut(c.runs, int(most), c.rate()))
		c.members += len(c.times)
	}
	c.times, c.runs, c.before = nil, 0, nil
}

// checks are those of the coins.
func (c *cohorts) checks() []Check {
	if c.runs > 0 {
		c.newRun()
	}
	if c.wrong != "" {
		out := within(CheckSize, "rounds with an impossible cohort", 1, 0, 0, 0)
		out.Why = c.wrong
		return []Check{out}
	}
	n, q := c.j.Cohort.Population, c.rate()
	size := skipped(CheckSize, "cohort.size fixes it, and every round had it")
	if !c.j.Fixed() {
		p := min(c.size, binomialOut(n*c.rounds, c.drawn, q))
		size = likely(CheckSize, fmt.Sprintf("least p-value of %d rounds of %.4g of %d members, and of all: a coin of %.4g",
			c.rounds, float64(c.drawn)/float64(max(1, c.rounds)), n, q), p, c.rounds+1, checkLevel)
	}
	members := likely(CheckMembers, fmt.Sprintf("least p-value of how often each of %d members was drawn", c.members),
		c.member, c.members, checkLevel)
	if c.pairs == 0 {
		return []Check{size, members, skipped(CheckOverlap, "everybody is in every round, or there was one round")}
	}
	return []Check{size, members,
		likely(CheckOverlap, fmt.Sprintf("least p-value of the members in common, of %d pairs of rounds", c.pairs),
			c.overlap, c.pairs, checkLevel)}
}

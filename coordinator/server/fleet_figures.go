package server

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/store"
)

var (
	fleetSpentDesc = prometheus.NewDesc("starling_fleet_epsilon_spent", "Epsilon of what a pool's jobs spent together, archived ones and rounds under way "+
		"included, for a device that is in all of them; +Inf where nothing bounds it, or, of no pool, where it cannot be accounted for.", []string{"pool"}, nil)
	fleetRoundsDesc = prometheus.NewDesc("starling_fleet_rounds", "Rounds of a pool's jobs that were charged, or are under way.", []string{"pool"}, nil)
	fleetBudgetDesc = prometheus.NewDesc("starling_fleet_epsilon_budget", "Limit on the epsilon of each pool's jobs together; absent: only their own budgets hold.", nil, nil)
	fleetJobsDesc   = prometheus.NewDesc("starling_jobs", "Jobs of this server by their state; one that is failed cannot go on by itself.", []string{"state"}, nil)
	fleetDeltaDesc  = prometheus.NewDesc("starling_fleet_delta", "Delta of the fleet's budget.", nil, nil)
)

// fleetFigures are what jobs of one server spent together.
type fleetFigures struct {
	host   *jobs.Host
	failed func(error)
}

// Describe announces nothing: which pools there are depends on the jobs.
func (fleetFigures) Describe(chan<- *prometheus.Desc) {}

// Collect accounts for the fleet's ledger.
func (f fleetFigures) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := map[store.State]int{}
	for _, state := range f.host.States() {
		count[state]++
	}
	for _, state := range store.States() {
		put(fleetJobsDesc, float64(count[state]), string(state))
	}
	totals, epsilon, delta, err := f.host.Totals()
	if err != nil { // the jobs' own figures are shown all the same
		f.failed(err)
		put(fleetSpentDesc, math.Inf(1), "") // so that a budget's alert says it, too
	}
	for _, t := range totals {
		spent := 0.0
		switch {
		case t.Guarantee != nil:
			spent = t.Guarantee.Epsilon
		case t.Why != "":
			spent = math.Inf(1)
		}
		put(fleetSpentDesc, spent, t.Pool)
		put(fleetRoundsDesc, float64(t.Rounds), t.Pool)
	}
	if epsilon > 0 {
		put(fleetBudgetDesc, epsilon)
		put(fleetDeltaDesc, delta)
	}
}

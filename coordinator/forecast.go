package coordinator

import (
	"math"
	"slices"
	"sync"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
)

// Forecast is the cost of the job's rounds from the first to the last, including those still to
// come. Each is accounted as the ledger's are, as the costliest that the job can draw.
type Forecast struct {
	// Epsilon is the budget, at Delta; Bound names the guarantee that it limits: "simulated" or
	// "delivered".
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	Bound   string  `json:"bound"`
	// Charged counts the rounds that were charged, released or not.
	Charged int `json:"charged"`
	// Left is the number of releases that the job still has to make; Affords is the number of them that the budget
	// holds, fewer where rounds were charged without a release.
	Left    int `json:"left"`
	Affords int `json:"affords"`
	// Points have the cost of growing numbers of charged rounds, in order.
	Points []ForecastPoint `json:"points"`
}

// ForecastPoint is the guarantee after a number of charged rounds.
type ForecastPoint struct {
	Rounds int `json:"rounds"`
	dp.Guarantees
}

// forecastPoints is about how many points a forecast has. They are evenly spaced in the square
// root, along which epsilon is near a line.
const forecastPoints = 16

// forecasting holds the guarantees for numbers of rounds. They are computed once, for the first
// caller.
type forecasting struct {
	mu    sync.Mutex
	known map[tally]dp.Guarantees
}

func (f *forecasting) at(t *core.Terms, costly dp.Event, n tally) (dp.Guarantees, error) {
	if g, ok := f.known[n]; ok {
		return g, nil
	}
	g, err := t.Guarantees(n.events(costly))
	if err != nil {
		return g, err
	}
	if f.known == nil {
		f.known = map[tally]dp.Guarantees{}
	}
	f.known[n] = g
	return g, nil
}

// Forecast computes what the rest of the job will cost. It is nil if no epsilon holds, or if the
// ledger has rounds of a kind whose cost cannot be predicted. It takes some seconds the first time,
// and may be called from any goroutine.
func (c *Coordinator) Forecast() (*Forecast, error) {
	if !c.private() {
		return nil, nil
	}
	ledger, err := c.store.Ledger()
	if err != nil {
		return nil, err
	}
	spent := ledger.Events()
	var before tally
	for _, e := range spent {
		if !c.accounts.covers(before, e) {
			return nil, nil
		}
		c.accounts.add(&before, e)
	}
	lost := before.charged
	f := &c.forecasting
	f.mu.Lock()
	defer f.mu.Unlock()
	total := c.t.Job.Rounds
	out := &Forecast{Epsilon: c.t.Budget.Epsilon, Delta: c.t.Budget.Delta, Bound: "delivered",
		Charged: len(ledger.Entries), Left: max(0, total-c.Status().Version)}
	of := func(g dp.Guarantees) float64 { return g.Delivered.Epsilon }
	if c.t.Job.Simulated() {
		out.Bound, of = "simulated", func(g dp.Guarantees) float64 { return g.Simulated.Epsilon }
	}
	if out.Affords, err = f.affords(c, out, lost, of); err != nil {
		return nil, err
	}
	rounds := []int{}
	for i := 1; i <= forecastPoints; i++ {
		share := float64(i) / forecastPoints
		rounds = append(rounds, int(math.Ceil(share*share*float64(total))))
	}
	if last := out.Charged + out.Affords; last > total {
		rounds = append(rounds, last)
	}
	for _, n := range slices.Compact(rounds) {
		g, err := f.at(c.t, c.accounts.costly, ofThem(n, lost))
		if err != nil {
			return nil, err
		}
		out.Points = append(out.Points, ForecastPoint{n, g})
	}
	return out, nil
}

// ofThem is n rounds, of which so many released nothing and cost another amount.
func ofThem(n, lost int) tally { return tally{max(0, n-lost), min(n, lost)} }

// affords is how many more rounds the budget holds, as far as the job has any left. That as many
// as the job has rounds keep it was verified when it began; lost are of those that cost more.
func (f *forecasting) affords(c *Coordinator, out *Forecast, lost int, of func(dp.Guarantees) float64) (int, error) {
	most := out.Charged + out.Left
	if c.t.Sampled() {
		most = min(most, c.t.Draws())
	}
	least := min(max(c.t.Job.Rounds, out.Charged), most)
	if lost > 0 {
		least = out.Charged
	}
	for least < most { // the largest number that keeps it is in [least, most]
		middle := (least + most + 1) / 2
		g, err := f.at(c.t, c.accounts.costly, ofThem(middle, lost))
		if err != nil {
			return 0, err
		}
		if of(g) <= c.t.Budget.Epsilon {
			least = middle
		} else {
			most = middle - 1
		}
	}
	return max(0, least-out.Charged), nil
}

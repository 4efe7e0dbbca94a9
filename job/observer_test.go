package job

import (
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
)

// TestObserver: by default an epsilon holds against whoever the job's rosters and coins show
// something to.
func TestObserver(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Job)
		want   dp.Observer
	}{
		"everybody in every round": {func(j *Job) { j.Cohort.SamplingRate, j.Cohort.Dropout = 1, 0 }, dp.Participants},
		"coins, rosters that show": {func(*Job) {}, dp.Colluding},
		"anonymous rosters":        {func(j *Job) { j.Shard.Anonymous = true }, dp.Public},
		"nobody colludes":          {func(j *Job) { j.Shard.Corrupt = 0 }, dp.Public},
		"several providers":        {func(j *Job) { j.Providers.Max = 3 }, dp.Participants},
		"said":                     {func(j *Job) { j.Privacy.Observer = "participants" }, dp.Participants},
		"said to be public":        {func(j *Job) { j.Privacy.Observer = "public" }, dp.Public},
		"simulated": {func(j *Job) {
			j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000
		}, dp.Public},
	} {
		j := sampledJob(20_000, 0.01, 0.1)
		c.change(&j)
		if j = j.Derived(); j.Observer() != c.want {
			t.Errorf("%s: %s, want %s", name, j.Observer(), c.want)
		}
		if err := j.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, change := range map[string]func(*Job){
		"must be public, coalition or": func(j *Job) { j.Privacy.Observer = "nobody" },
		"shard.corrupt is 0":           func(j *Job) { j.Privacy.Observer, j.Shard.Corrupt = "coalition", 0 },
		"shard.anonymous is set":       func(j *Job) { j.Privacy.Observer, j.Shard.Anonymous = "coalition", true },
		"no coin is hidden":            func(j *Job) { j.Privacy.Observer, j.Cohort.SamplingRate = "coalition", 1 },
		"privacy.none is set":          func(j *Job) { j.Privacy.Observer, j.Privacy.None = "public", true },
		"no rosters": func(j *Job) {
			j.Privacy.Observer, j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = "participants", 1_000_000, 10_000
		},
	} {
		j := sampledJob(20_000, 0.01, 0)
		change(&j)
		if err := j.Derived().Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCoalitionSees holds what a coalition sees against a sum over every size of the device's
// shard: it is in none of the others' hands only if none of them is of the coalition.
func TestCoalitionSees(t *testing.T) {
	for _, c := range []struct {
		population, size int
		rate             float64
	}{{4000, 0, 0.01}, {10_000, 0, 0.01}, {20_000, 0, 0.01}, {20_000, 64, 0.02}} {
		population := c.population
		j := sampledJob(population, c.rate, 0.1)
		if c.size > 0 { // several shards, seven tenths full
			j.Shard.Size = c.size
		}
		j = j.Derived()
		q, err := j.Quorum()
		if err != nil || q.Sees <= 0 || q.Sees > 1 {
			t.Fatalf("%d: %+v, %v", population, q, err)
		}
		hostile := math.Ceil(j.Shard.Corrupt * float64(population))
		for _, ready := range []int{q.Ready, (q.Ready + population) / 2, population} {
			groups, ok := q.Allows(j, population, ready)
			if !ok {
				continue
			}
			p, unseen := j.Cohort.SamplingRate/float64(groups), 0.0
			for g, chance := 0, math.Pow(1-p, float64(ready-1)); g < min(ready, 2000); g++ {
				// Of g others each choice of them is as likely: none of the coalition is in it.
				none := 1.0
				for i := range g {
					none *= 1 - hostile/float64(ready-1-i)
				}
				unseen += chance * none
				chance *= float64(ready-1-g) / float64(g+1) * p / (1 - p)
			}
			if 1-unseen > q.Sees*(1+1e-9) || ready == q.Ready && 1-unseen < 0.8*q.Sees {
				t.Errorf("%d, %d there: a coalition sees a coin with probability %v, accounted %v", population, ready, 1-unseen, q.Sees)
			}
		}
		// Where so many more are active that the coalition sees more, nothing is drawn.
		if _, ok := q.Allows(j, 10*population, q.Ready); ok {
			t.Errorf("%d: a round is drawn of ten times as many active devices, of whom as many are there", population)
		}
		if c.size == 0 {
			continue
		}
		// A hundredth more, among whom the hostile tip nothing, see more all the same.
		active := population * 101 / 100
		if _, hit := j.groups(active, q.Ready); hit > q.Hit || q.Hit == 0 {
			t.Fatalf("%d: hit with probability %v, accounted %v: no test", population, hit, q.Hit)
		}
		if _, ok := q.Allows(j, active, q.Ready); ok {
			t.Errorf("%d: a round is drawn where a coalition sees a coin with probability %v, accounted %v", population, j.sees(active, q.Ready), q.Sees)
		}
	}
	j := sampledJob(20_000, 0.01, 0.1)
	j.Shard.Anonymous = true
	if q, err := j.Derived().Quorum(); err != nil || q.Sees != 0 {
		t.Errorf("anonymous rosters show %+v, %v", q, err)
	}
}

// TestSimulatedPopulationsAreAccountedAsDeployed: what is printed for a simulated population of so
// many is what a deployment of as many gets from the same noise.
func TestSimulatedPopulationsAreAccountedAsDeployed(t *testing.T) {
	for _, population := range []int{1000, 4000, 10_000, 1_000_000} {
		s := Default()
		s.Name, s.Labels, s.Rounds = "x", []string{"a", "b"}, 200
		s.Privacy.Delta, s.Privacy.SimulatedPopulation, s.Privacy.SimulatedCohort = 1e-7, population, population/100
		s.Cohort.Population = 5
		s.Shard.Corrupt, s.Shard.BreachBits = 0, 0
		s = s.Derived()
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		d := sampledJob(population, 0.01, 0)
		d.Privacy.Delta, d.Privacy.Observer = 1e-7, "public"
		d = d.Derived()
		q, err := s.Quorum()
		if err != nil {
			t.Fatal(err)
		}
		real, refused := d.Quorum()
		const z = 0.9
		got, err := accounting.Epsilon([]dp.Event{s.BudgetRounds(q)(z)}, s.Delta()-s.FloorDelta(), dp.RDP)
		if err != nil {
			t.Fatal(err)
		}
		if refused != nil { // no coin of such a deployment would hide anybody
			if seen, err := accounting.VisibleEpsilon([]dp.Event{d.BudgetRounds(Quorum{})(z)}, d.Delta(), dp.RDP); err != nil || got.Epsilon < seen.Epsilon*(1-1e-9) {
				t.Errorf("%d: %v, and nobody could deploy it (%v): against participants it has %v", population, got, refused, seen)
			}
			continue
		}
		want, err := accounting.Epsilon([]dp.Event{d.BudgetRounds(real)(z)}, d.Delta()-d.FloorDelta(), dp.RDP)
		if err != nil || got.Epsilon < want.Epsilon*(1-1e-9) || got.Epsilon > want.Epsilon*(1+1e-9) {
			t.Errorf("%d: simulated %v, deployed %v, %v", population, got, want, err)
		}
		t.Logf("%d: %.3f", population, got.Epsilon)
	}
}

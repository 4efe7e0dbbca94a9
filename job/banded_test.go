package job

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// inTurn is a job with banded noise.
func inTurn(change ...func(*Job)) Job {
	j := Default()
	j.Name, j.Labels, j.Rounds = "x", []string{"a", "b"}, 200
	j.Cohort.Population, j.Cohort.Sampling, j.Cohort.Size = 10_000, "fixed", 100
	j.Privacy.Mechanism = MechanismBanded
	for _, f := range change {
		f(&j)
	}
	return j.Derived()
}

func TestBandedRows(t *testing.T) {
	for name, c := range map[string]struct {
		j    Job
		want dp.Banded
	}{
		"defaults":    {inTurn(), dp.Banded{Band: 50, Separation: 50, Eighths: 4, Row: 1}},
		"separation":  {inTurn(func(j *Job) { j.Privacy.Separation = 100 }), dp.Banded{Band: 100, Separation: 100, Eighths: 4, Row: 1}},
		"band":        {inTurn(func(j *Job) { j.Privacy.Band = 7 }), dp.Banded{Band: 7, Separation: 50, Eighths: 4, Row: 1}},
		"many rounds": {inTurn(func(j *Job) { j.Rounds = 751 }), dp.Banded{Band: 50, Separation: 50, Eighths: 5, Row: 1}},
		"a long band": {inTurn(func(j *Job) {
			j.Cohort.Population, j.Cohort.MaxEnrolled, j.Privacy.Separation = 1_000_000, 1_000_000, 9000
		}),
			dp.Banded{Band: dp.MaxBand, Separation: 9000, Eighths: 4, Row: 1}},
		"all of few": {inTurn(func(j *Job) { j.Cohort.Population, j.Cohort.Size = 100, 80 }), dp.Banded{Band: 1, Separation: 1, Eighths: 5, Row: 1}},
	} {
		if err := c.j.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := c.j.BandedRows(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		e := c.j.BudgetRounds(Quorum{})(2)
		if err := e.Check(); err != nil || e.Banded != c.want || int(e.Count) != c.j.Rounds || c.j.Observer() != dp.Participants {
			t.Errorf("%s: %+v (%v), against %s", name, e, err, c.j.Observer())
		}
	}
	independent := inTurn(func(j *Job) { j.Privacy.Mechanism = MechanismIndependent })
	if err := independent.Validate(); err != nil || independent.Privacy.Mechanism != "" || independent.BandedRows() != (dp.Banded{}) {
		t.Errorf("independent: %+v, %v", independent.Privacy, err)
	}
}

func TestNoiseBlocks(t *testing.T) {
	one := inTurn(func(j *Job) { j.Adapter.RankMin, j.Adapter.RankMax = 4, 4 })
	many := inTurn(func(j *Job) { j.Privacy.Band = 7 })
	for version, want := range map[uint64][4]int{0: {0, 0, 0, 0}, 6: {0, 6, 0, 6}, 7: {0, 7, 1, 0}, 20: {0, 20, 2, 6}} {
		a, b := one.NoiseBlock(version)
		c, d := many.NoiseBlock(version)
		if got := [4]int{int(a), b, int(c), d}; got != want {
			t.Errorf("version %d: %v, want %v", version, got, want)
		}
	}
}

// What does not go with banded noise is refused by name, with what to do.
func TestBandedNoiseRefuses(t *testing.T) {
	for text, change := range map[string]func(*Job){
		"must be independent or banded":            func(j *Job) { j.Privacy.Mechanism = "bandit" },
		"privacy.mechanism: banded only":           func(j *Job) { j.Privacy.Mechanism, j.Privacy.Separation = "", 4 },
		"privacy.none is set":                      func(j *Job) { j.Privacy.None = true },
		"set cohort.sampling: fixed":               func(j *Job) { j.Cohort.Sampling, j.Cohort.Size, j.Privacy.Separation = "", 0, 4 },
		"set privacy.noise: central":               func(j *Job) { j.Privacy.Noise = NoiseSilo },
		"providers.max: 0":                         func(j *Job) { j.Providers.Max = 3 },
		"leave clipping out":                       func(j *Job) { j.Clipping.Adaptive = true },
		"measure on validation_file":               func(j *Job) { j.Training.HeldOut = 0.2 },
		"set shard.trim: 0":                        func(j *Job) { j.Shard.Trim, j.Shard.Size, j.Shard.Floor, j.Shard.BreachBits = 1, 20, 10, 0 },
		"must be in 1..1073741824":                 func(j *Job) { j.Privacy.Separation = -3 },
		"at most 100":                              func(j *Job) { j.Privacy.Separation = 101 },
		"must be in 1..50, privacy.separation or ": func(j *Job) { j.Privacy.Band = 51 },
	} {
		if err := inTurn(change).Validate(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// A fleet that is smaller than all cohorts that rest at a time would end up with nobody to draw.
	if n, err := inTurn().LeastStart(); err != nil || n != 50*inTurn().Cohort.Size {
		t.Errorf("rounds begin with %d devices, %v", n, err)
	}
}

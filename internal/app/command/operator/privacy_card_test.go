package operator

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/app/guarantee"
	"github.com/starling-fl/starling/internal/protocol/card"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
)

// TestCardAgreesWithExplain: a card says what privacy explain says, and no honest job's card contradicts its announcement.
func TestCardAgreesWithExplain(t *testing.T) {
	base := tiny.Base(t, 32, 2, 16)
	small := func(change func(*job.Job)) job.Job {
		j := job.Default()
		j.Name, j.Labels, j.Rounds, j.Adapter.Sequence, j.Privacy.Epsilon = "test", []string{"a", "b"}, 20, 8, 6
		j.Adapter.RankMin, j.Adapter.RankMax, j.Cohort.Population, j.Privacy.Accountant = 2, 2, 200, "rdp" // which is quick
		change(&j)
		return j
	}
	coins := func(j *job.Job) { j.Cohort.Population, j.Cohort.SamplingRate, j.Shard.Size = 6000, 0.05, 96 }
	for name, j := range map[string]job.Job{
		"everybody": small(func(*job.Job) {}),
		"tight":     small(func(j *job.Job) { coins(j); j.Rounds, j.Privacy.Accountant = 4, "tight" }),
		"few":       small(func(j *job.Job) { coins(j); j.Cohort.Population = 900 }),
		"devices":   small(func(j *job.Job) { j.Privacy.Noise = job.NoiseDevices }),
		"silo":      small(func(j *job.Job) { j.Privacy.Noise = job.NoiseSilo }),
		"providers": small(func(j *job.Job) { j.Providers.Max, j.Providers.Expected, j.Providers.SamplingRate = 4, 2, 0.5 }),
		"simulated": small(func(j *job.Job) { j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000 }),
		"adaptive":  small(func(j *job.Job) { j.Clipping.Adaptive = true }),
	} {
		file, err := coordinator.PlannedCard(j, base)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c, err := card.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		e, err := guarantee.ExplainJob(j.Derived())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		coalition := e.Public
		if e.Coalition != nil {
			coalition = *e.Coalition
		}
		if coalition.Epsilon < e.Public.Epsilon {
			t.Errorf("%s: %v against a coalition, %v against the public", name, coalition.Epsilon, e.Public.Epsilon)
		}
		for o, want := range map[dp.Observer]*dp.Guarantee{dp.Public: &e.Public, dp.Colluding: &coalition, dp.Participants: &e.Visible, dp.Untrusting: e.Untrusted} {
			got, ok := c.Against(o)
			switch {
			case !ok || got.None != (want == nil):
				t.Errorf("%s: %s: %+v, explained as %+v", name, o, got, want)
			case want != nil && want.Epsilon < 1000 && !(math.Abs(got.Epsilon/want.Epsilon-1) < 1e-2 && got.Delta == want.Delta):
				t.Errorf("%s: %s: %v at %v, explained as %v at %v", name, o, got.Epsilon, got.Delta, want.Epsilon, want.Delta)
			}
		}
		announced, err := coordinator.Announcement(j, base)
		if err != nil {
			t.Fatal(err)
		}
		w, err := wire.ParseJob(announced)
		if err != nil {
			t.Fatal(err)
		}
		task := wire.TaskID(announced)
		c.ID = hex.EncodeToString(task[:])
		if err := c.Holds(w, task); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

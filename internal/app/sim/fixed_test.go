package sim

import (
	"testing"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
)

// Ten organisations, two of them a round, as a competition has it: coins would choose too
// few in every third round. Every round asks two, who are not always the same, and the
// ledger counts no amplification. With noise the guarantee is about what a device sends.
func TestTwoOfTen(t *testing.T) {
	for name, private := range map[string]bool{"noise": true, "no noise": false} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t, 10)
			j := &cfg.Coordinator.Job
			j.Rounds, j.Cohort.Sampling, j.Cohort.Size, j.Cohort.Floor = 8, "fixed", 2, 2
			j.Shard.Size, j.Shard.Floor, j.Shard.Corrupt = 64, 2, 0
			j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort, j.Privacy.NoiseMultiplier = 0, 0, 0
			if !private {
				j.Privacy.None = true
				cfg.AcceptNotPrivate = true
			}
			r, err := play(t, cfg)
			ok(t, err)
			took := 0
			for i, d := range r.Devices {
				ok(t, d.Err)
				took += d.Committed
				if d.Committed == 8 {
					t.Errorf("device %d was in every round", i)
				}
			}
			if r.Rounds != 8 || took != 16 {
				t.Errorf("%d rounds of %d devices in all, want 8 of 16", r.Rounds, took)
			}
			l, err := store.ReadLedger(cfg.Coordinator.Dir)
			ok(t, err)
			if len(l.Entries) != 8 {
				t.Fatalf("%d entries", len(l.Entries))
			}
			for _, e := range l.Entries {
				if e.Event.SamplingRate != 1 || e.Event.Fixed != private {
					t.Errorf("%+v", e.Event)
				}
			}
			if private && r.Delivered.Adjacency != dp.ZeroOut(dp.AdjacencyAddRemove) {
				t.Errorf("guarantee: %v", r.Delivered)
			}
		})
	}
}

package coordinator

import (
	"math"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/secagg/strength"
)

// Job is what a Coordinator is made for; package job reads it.
type Job = job.Job

// maskingFacts are what is logged of what the masking of a job's expected cohort withstands: breach
// probabilities per shard, round and job. If no member of a shard is reckoned to be corrupted there
// is nothing to compute, and that is said.
func maskingFacts(j Job) ([]any, error) {
	cohort := max(int(j.ExpectedCohort()), j.Cohort.Floor)
	k := (cohort + j.Shard.Size - 1) / j.Shard.Size
	shard := (cohort + k - 1) / k
	t, err := j.Masking().Threshold(shard)
	if err != nil {
		return nil, err
	}
	m, err := strength.Evaluate(strength.Model{
		Shard: shard, Threshold: t, Dropout: j.Cohort.Dropout, Corrupt: j.Shard.Corrupt, SemiHonest: j.Shard.SemiHonest,
		Cohort: cohort, Rounds: j.Rounds, BreachBits: max(1, j.Shard.BreachBits), MaxFailure: 1,
	})
	if err != nil {
		return nil, err
	}
	facts := []any{"shards", m.Shards, "shard", m.Shard, "threshold", m.Threshold}
	if math.IsInf(m.Breach, -1) {
		return append(facts, "corrupt", 0), nil
	}
	return append(facts, "log2_breach_shard", m.Breach, "log2_breach_round", m.BreachRound, "log2_breach_job", m.BreachJob), nil
}

package core

import (
	"testing"

	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

func tinyBase(t testing.TB) *model.Base { return tiny.Base(t, 8, 1, 8) }

// tinyJob is a job of n devices whose releases are the mean itself.
func tinyJob(n int) job.Job {
	j := job.Default()
	j.Server.Optimizer = "fedavg"
	j.Name, j.Labels, j.Rounds = "tiny", []string{"a", "b"}, 2
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 3, Alpha: 4, Sequence: 8}
	j.Privacy.ClipNorm = 1
	j.Cohort.Population, j.Cohort.Floor = n, min(n, 3)
	j.Shard = job.Shard{Size: 64, Floor: 3}
	return j
}

// loud is tinyJob of one rank and next to no noise.
func loud(n, rounds int) job.Job {
	j := tinyJob(n)
	j.Rounds, j.Adapter.RankMin = rounds, 3
	j.Privacy.NoiseMultiplier, j.Privacy.Epsilon = 1e-3, 1e12
	return j
}

func sampledJob(n, rounds int) job.Job {
	j := loud(n, rounds)
	j.Cohort.SamplingRate, j.Cohort.Floor = 0.8, 3
	return j
}

// adaptiveJob's clip norm moves by a step that the noise hardly changes.
func adaptiveJob(n, rounds int) job.Job {
	j := loud(n, rounds)
	j.Clipping = job.Clipping{Adaptive: true, Quantile: 0.5, Rate: 0.2, CountNoise: 1e-3}
	return j
}

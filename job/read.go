package job

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/secagg"
)

// Parse reads a job file: strict YAML, an unknown key is an error that
// names it and its line. The result carries the defaults and is validated; its quorum exists.
// An error about who takes part recommends what passes, where something does: see [RemedyOf].
func Parse(r io.Reader) (Job, error) {
	j := Default()
	if err := strict.Read(r, &j); err != nil {
		hint := ""
		if text := err.Error(); strings.Contains(text, "privacy.epsilon: ") && strings.Contains(text, "is not a number in range") {
			hint = noEpsilon + "\n"
		}
		return Job{}, fmt.Errorf("%w: %s%w", ErrInvalid, hint, err)
	}
	written := j
	j = j.Derived()
	if err := j.check(); err != nil {
		return Job{}, written.advise(err)
	}
	return j, nil
}

// UnmarshalYAML reads the group, or the word "none" in its place, which means none: true.
func (p *Privacy) UnmarshalYAML(decode func(any) error) error {
	var word string
	if decode(&word) == nil && word == "none" {
		p.None = true
		return nil
	}
	type group Privacy // without this method
	return decode((*group)(p))
}

// Load is Parse on a file. A relative base is looked for beside it, and so is a relative
// validation_file.
func Load(path string) (Job, error) {
	if of := filepath.Ext(strings.TrimSuffix(path, ".gz")); slices.Contains([]string{".jsonl", ".csv", ".tsv", ".parquet", ".arrow"}, of) {
		return Job{}, refuse("%s is a data file by its name (%s): a job file is YAML, and starling init --data %s writes one", path, of, path)
	}
	f, err := named.Once(path)
	if err != nil {
		return Job{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	defer f.Close()
	j, err := Parse(f)
	if err != nil {
		return Job{}, fmt.Errorf("%s: %w", path, err)
	}
	// A base that lies beside the job file is that one, from whatever folder the
	// job is started.
	if j.Base != "" && !filepath.IsAbs(j.Base) {
		beside := filepath.Join(filepath.Dir(path), j.Base)
		if info, err := os.Stat(beside); err == nil && info.IsDir() {
			j.Base = beside
		}
	}
	if j.ValidationFile != "" && !filepath.IsAbs(j.ValidationFile) {
		j.ValidationFile = filepath.Join(filepath.Dir(path), j.ValidationFile)
	}
	return j, nil
}

// Default returns the defaults; Name and Labels are left to fill in.
func Default() Job {
	return Job{
		Rounds:    20,
		Adapter:   Adapter{RankMin: 1, RankMax: 8, Sequence: 64},
		Training:  Training{Steps: 4, Batch: 8, Optimizer: training.AdamW},
		Cohort:    Cohort{Population: 24, SamplingRate: 1, MaxEnrolled: 100_000, MaxConnected: 10_000, MaxAbandoned: 10},
		Shard:     Shard{Corrupt: 0.05, BreachBits: 40},
		Privacy:   Privacy{Epsilon: 2, Accountant: "tight"},
		Providers: Providers{SamplingRate: 1},
		Clipping:  Clipping{Quantile: 0.5, Rate: 0.2},
		Wire:      Wire{Uplink: "nf4", Downlink: "bf16", DownlinkCodec: "zstd"},
		Server: Server{
			Optimizer: FedAvgM, Momentum: 0.5,
			Beta1: 0.9, Beta2: 0.99,
		},
		Deadlines: Deadlines{
			Gather: 30 * time.Second, Key: 30 * time.Second, Share: 30 * time.Second,
			Collect: 5 * time.Minute, Confirm: 30 * time.Second, Unmask: 30 * time.Second,
			Reconnect: 5 * time.Second, Enough: 0.9, Grace: 5 * time.Second, Min: 10 * time.Second,
		},
		Enrolment: Enrolment{Absent: 30 * 24 * time.Hour},
	}
}

// Derived fills in the fields whose default follows from other fields.
func (j Job) Derived() Job {
	if j.Training.Arithmetic == Exact {
		j.Training.Arithmetic = "" // one job, however it is written
	}
	if j.Training.EndFactor == 1 {
		j.Training.EndFactor = 0
	}
	if j.Privacy.Noise == NoiseCentral {
		j.Privacy.Noise = ""
	}
	if j.Privacy.Mechanism == MechanismIndependent {
		j.Privacy.Mechanism = ""
	}
	j.Privacy.Separation, j.Privacy.Band = j.separation(), j.band()
	if j.Privacy.Groups == 1 {
		j.Privacy.Groups = 0
	}
	j.Server = j.Server.Derived()
	if j.Training.HeldOut > 0 {
		j.Training.Scored = cmp.Or(j.Training.Scored, 1)
		j.Privacy.ScoreNoise = cmp.Or(j.Privacy.ScoreNoise, 0.03)
	}
	if s, err := model.ParseScaling(j.Adapter.Scale); err == nil {
		j.Adapter.Scale = string(s)
	}
	if j.Adapter.RankDistribution == uniformRanks {
		j.Adapter.RankDistribution = ""
	}
	if j.BaseFormat == baseNF4 {
		j.Training.CompactBase = true   // codes on the wire are codes in memory
		if j.Training.MicroBatch == 0 { // what a step computes is then most of a device's memory
			j.Training.MicroBatch = halved(j.Training.Batch)
		}
	}
	if j.Cohort.Sampling == samplingPoisson {
		j.Cohort.Sampling = ""
	}
	if j.Cohort.Floor == 0 {
		j.Cohort.Floor = j.cohortFloor()
	}
	if j.Deadlines.Enough == 0 {
		j.Deadlines.Enough = 0.9
	}
	if j.Deadlines.Min == 0 {
		j.Deadlines.Min = 10 * time.Second
	}
	if j.Deadlines.Grace == 0 {
		j.Deadlines.Grace = 5 * time.Second
	}
	if j.Sampled() && j.Cohort.Dropout == 0 {
		j.Cohort.Dropout = 0.1
	}
	if j.Shard.Size == 0 {
		j.Shard.Size, j.Shard.Floor = j.fitShard()
	}
	if j.Shard.Floor == 0 {
		j.Shard.Floor = j.leastShard(max(2, min(8, j.Cohort.Floor)))
	}
	if j.Providers.Max > 0 && j.Providers.Expected == 0 {
		j.Providers.Expected = float64(j.Providers.Max)
	}
	if j.Clipping.Adaptive && j.Clipping.Min == 0 { // 0 until the base is known
		j.Clipping.Min = j.Privacy.ClipNorm / 1000
	}
	if j.Clipping.Adaptive && j.Clipping.Max == 0 {
		j.Clipping.Max = j.Privacy.ClipNorm * 1000
	}
	return j
}

// cohortFloor is half of the expected cohort, or less where so small a cohort would be
// drawn in one of the job's rounds with a chance that counts.
func (j Job) cohortFloor() int {
	floor := max(j.leastFloor(), int(j.ExpectedCohort()/2))
	if !j.Sampled() || !(j.Cohort.SamplingRate > 0) {
		return floor
	}
	for limit := j.FloorDelta() / 2; floor > 2; floor -= max(1, floor/50) {
		if dp.CohortFloorFailure(j.Cohort.Population, j.Cohort.SamplingRate, floor, j.Rounds) <= limit {
			break
		}
	}
	return max(2, floor)
}

// leastFloor is the least cohort.floor: one device's update is hidden by another's.
func (j Job) leastFloor() int {
	if j.Alone() {
		return 1
	}
	return 2
}

// halved is the largest divisor of a batch that leaves at least two parts; 0 where there
// is none.
func halved(batch int) int {
	for n := batch / 2; n > 0; n-- {
		if batch%n == 0 {
			return n
		}
	}
	return 0
}

// leastShard is about the smallest shard from n on for which a threshold
// exists; it grows by an eighth at a time, since each answer takes exact sums.
func (j Job) leastShard(n int) int {
	if !(j.Shard.Corrupt > 0 && j.Shard.Corrupt < 1) || j.Shard.Size > secagg.MaxShard {
		return n
	}
	for c := j.Masking(); n < j.Shard.Size; n = min(n+1+n/8, j.Shard.Size) {
		if _, err := c.Threshold(n); err == nil {
			break
		}
	}
	return n
}

// MinConnected is the number of devices that must be connected for a round to start.
func (j Job) MinConnected() int { return max(j.Derived().Shard.Floor, j.Cohort.Size) }

// ExpectedCohort is the expected number of devices in a cohort, or its fixed size.
func (j Job) ExpectedCohort() float64 {
	if j.Fixed() {
		return float64(j.Cohort.Size)
	}
	return j.Cohort.SamplingRate * float64(j.Cohort.Population)
}

package job

import (
	"io"

	"github.com/starling-fl/starling/internal/leaf/uniform"
	"github.com/starling-fl/starling/model"
)

// Distributions of a round's rank: see Adapter.RankDistribution.
const (
	uniformRanks   = "uniform"
	geometricRanks = "geometric"
	weightedRanks  = "weights"
)

// A geometric draw stops at each rank with probability stop of stopOf: DyLoRA's 0.15.
const stop, stopOf = 3, 20

// maxRankWeight bounds a weight, so that their sum, of at most 4096, is an int anywhere.
const maxRankWeight = 1 << 18

// DrawRank draws the rank of a round exactly as distributed, by whole numbers without bias, from
// rnd alone. The job must have ranks other than 0.
func (a Adapter) DrawRank(rnd io.Reader) (int, error) {
	n := a.RankMax - a.RankMin + 1
	switch a.RankDistribution {
	case geometricRanks:
		// A coin for each rank, again from the first behind the last: what is kept is the
		// geometric distribution given that it ends within the range.
		for b := 0; ; b = (b + 1) % n {
			i, err := uniform.Below(rnd, stopOf)
			if err != nil || i < stop {
				return a.RankMin + b, err
			}
		}
	case weightedRanks:
		sum := 0
		for _, w := range a.RankWeights {
			sum += w
		}
		i, err := uniform.Below(rnd, sum)
		if err != nil {
			return 0, err
		}
		b := 0
		for ; i >= a.RankWeights[b]; b++ {
			i -= a.RankWeights[b]
		}
		return a.RankMin + b, nil
	}
	i, err := uniform.Below(rnd, n)
	return a.RankMin + i, err
}

// validateRanks checks how a round's rank is drawn, and what a rank scales by.
func (j Job) validateRanks() error {
	a := j.Adapter
	ranked := !a.HeadOnly && j.Method().Ranked()
	if _, err := model.ParseScaling(a.Scale); err != nil {
		return refuse("adapter.scale is %.40q, must be rank (alpha/b at rank b) or constant (alpha/rank_max)", a.Scale)
	}
	switch a.RankDistribution {
	case "", uniformRanks, geometricRanks, weightedRanks:
	default:
		return refuse("adapter.rank_distribution is %.40q, must be uniform, geometric or weights", a.RankDistribution)
	}
	if !ranked {
		for key, set := range map[string]bool{"scale": a.Scale != "" && a.Scale != "rank", "rank_distribution": a.RankDistribution != "" && a.RankDistribution != uniformRanks,
			"rank_weights": len(a.RankWeights) > 0} {
			if set {
				return refuse("adapter.%s is given, but the method has no ranks: leave it out, or use adapter.method lora", key)
			}
		}
		if j.Privacy.ClipByRank {
			return refuse("privacy.clip_by_rank is set, but the method has no ranks: leave it out, or use adapter.method lora")
		}
		return nil
	}
	n, sum := a.RankMax-a.RankMin+1, 0
	if (a.RankDistribution == weightedRanks) != (len(a.RankWeights) > 0) {
		return refuse("adapter.rank_distribution is %q and adapter.rank_weights has %d entries: weights go with weights", a.RankDistribution, len(a.RankWeights))
	}
	if len(a.RankWeights) == 0 {
		return nil
	}
	if len(a.RankWeights) != n {
		return refuse("adapter.rank_weights has %d entries, must have %d: one for each rank from rank_min %d to rank_max %d",
			len(a.RankWeights), n, a.RankMin, a.RankMax)
	}
	for i, w := range a.RankWeights {
		if w < 0 || w > maxRankWeight {
			return refuse("adapter.rank_weights[%d] is %d, must be in 0..%d", i, w, maxRankWeight)
		}
		sum += w
	}
	if sum == 0 {
		return refuse("adapter.rank_weights are all 0: one rank at least must be drawn")
	}
	return nil
}

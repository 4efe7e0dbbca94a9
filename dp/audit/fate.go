package audit

import (
	"crypto/rand"
	"fmt"
	"math/big"

	"github.com/starling-fl/starling/coordinator/round"
)

// fates are the turns that drawn members do not answer any more.
//
// With canaries that contribute, each of those who are there vanishes behind the cut
// by a coin of the trace's dropout. Where canaries come and go they all vanish as soon
// as they are cut, and the adversary's devices leave together, as real ones do: up to
// the trace's share of them, and if that is enough as many as leave it to the
// canaries whether their shard reaches its threshold.
func (r *run) fates(cohort []int, online []bool, dropout float64) (map[int]round.State, error) {
	fates := map[int]round.State{}
	var others []int
	canaries := 0
	for _, member := range cohort {
		switch {
		case !online[member]:
			fates[member] = round.Gathering
		case r.pass == PassPresence && member < len(r.in):
			fates[member] = round.Collecting
		default:
			fates[member] = stays
			others = append(others, member)
		}
	}
	if r.pass == PassUpdates {
		return fates, r.leave(fates, others, dropout)
	}
	for i := range r.in {
		if online[i] {
			canaries++
		}
	}
	drawn := r.cfg.Job.Cohort.SamplingRate * float64(canaries) / 2
	more, err := r.coin(0.5)
	if err != nil {
		return nil, err
	}
	expected := int(drawn)
	if more {
		expected++
	}
	t, err := r.cfg.Job.Masking().Threshold(len(others) + expected)
	if leaving := len(others) - t; err == nil && leaving >= 0 && float64(leaving) <= dropout*float64(len(others)) {
		for _, member := range others[:leaving] {
			fates[member] = round.Collecting
		}
		return fates, nil
	}
	return fates, r.leave(fates, others, dropout) // more shards than one, or a threshold out of reach
}

// leave lets members vanish by a coin each, in a turn behind the cut.
func (r *run) leave(fates map[int]round.State, members []int, dropout float64) error {
	for _, member := range members {
		gone, err := r.coin(dropout)
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		n, err := rand.Int(r.cfg.Rand, big.NewInt(int64(round.Unmasking-round.Collecting)+1))
		if err != nil {
			return fmt.Errorf("audit: randomness: %w", err)
		}
		fates[member] = round.Collecting + round.State(n.Int64())
	}
	return nil
}

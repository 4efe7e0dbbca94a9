// Package metric holds the figures that a released adapter is measured by. It links no evaluator,
// for programs that only read them.
//
//	best, ranks := metric.BestOf(figures, 40) // the rank that the fleet found best in the last 20 of 40 rounds
package metric

import (
	"maps"
	"math"
	"slices"
)

// Score is an adapter's result on public data.
type Score struct {
	Accuracy float64 // in [0, 1]; of words transcribed 1 less their error rate, which may be below 0
	// Loss is the mean cross-entropy of the right labels in nats, over what Accuracy
	// is a mean over; 0 if the evaluator has none.
	Loss float64
	// Of is the number of documents measured, for intervals; 0 where the evaluator does not say.
	Of int
}

// RankAccuracy is the accuracy of the released adapter, cut to a rank, on public validation data.
// Devices' training losses never appear here.
type RankAccuracy struct {
	Rank     int     `json:"rank"`
	Accuracy float64 `json:"accuracy"`
	Loss     float64 `json:"loss,omitempty"` // validation loss, see Score; 0: none
	Of       int     `json:"of,omitempty"`   // documents that it was measured on; 0: not known
}

// Fleet is what a round's devices report about the adapter that the round began with, cut to its
// rank, on examples of their own that they never train on: means over devices, from the round's
// noisy sum, each with the noise in it.
type Fleet struct {
	Rank    int `json:"rank"`
	Version int `json:"version"` // of the adapter: 0 before the first release
	// Units is the number of devices, or providers, that reported anything.
	Units Noisy `json:"units"`
	Loss  Noisy `json:"loss"` // in nats, each unit's bounded
	// Silent is the expected number of devices, or providers, less Units: training came to nothing
	// there and zeros were sent, or they were not there, or hold too few examples to leave any out.
	Silent Noisy `json:"silent,omitzero"`
	// Accuracy is the share of right labels; zero of tasks without labels.
	Accuracy Noisy `json:"accuracy,omitzero"`
	// Speed is the geometric mean of training steps a second, its noise being a factor; zero in a
	// reproducible run.
	Speed Noisy `json:"steps_per_second,omitzero"`
}

// Noisy is a number and the standard deviation of the noise in it.
type Noisy struct {
	Mean  float64 `json:"mean"`
	Noise float64 `json:"noise"`
}

// confident is how many standard deviations a normal variable stays within with 95 %.
const confident = 1.959964

// Interval holds, with 95 % confidence, what the number would be without its noise. How the drawn
// devices differ from the others is not in it.
func (n Noisy) Interval() (low, high float64) {
	return n.Mean - confident*n.Noise, n.Mean + confident*n.Noise
}

// FactorInterval is Interval for a number whose noise is a factor.
func (n Noisy) FactorInterval() (low, high float64) {
	f := math.Pow(n.Noise, confident)
	return n.Mean / f, n.Mean * f
}

// BestOf returns the rank that the fleet found best in the last half of a job's rounds (0 values if
// nothing was reported), and what is known of each rank, ascending: means weighted by how little
// noise was in them. It compares accuracy, or loss for tasks without labels.
func BestOf(said []Fleet, rounds int) (best int, ranks []RankAccuracy) {
	type total struct{ accuracy, loss, weight float64 }
	of := map[int]*total{}
	judged := false
	for _, f := range said {
		if 2*f.Version < rounds {
			continue
		}
		noise := max(f.Loss.Noise, 1e-9) // in proportion to that of the accuracy
		t := of[f.Rank]
		if t == nil {
			t = &total{}
			of[f.Rank] = t
		}
		w := 1 / (noise * noise)
		t.weight += w
		t.accuracy += w * f.Accuracy.Mean
		t.loss += w * f.Loss.Mean
		judged = judged || f.Accuracy != Noisy{}
	}
	var first RankAccuracy
	for _, rank := range slices.Sorted(maps.Keys(of)) {
		t := of[rank]
		r := RankAccuracy{Rank: rank, Accuracy: t.accuracy / t.weight, Loss: t.loss / t.weight}
		if len(ranks) == 0 || judged && r.Accuracy > first.Accuracy || !judged && r.Loss < first.Loss {
			best, first = rank, r
		}
		ranks = append(ranks, r)
	}
	return best, ranks
}

package core

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// normAt is the clip norm of a round at a rank where clip is the largest rank's: the
// same, or with privacy.clip_by_rank that of as many values with the same root mean
// square. It is made of nothing but the job and the rank, which are public.
func (t *Terms) normAt(rank int, clip float64) float64 {
	if !t.Job.Privacy.ClipByRank {
		return clip
	}
	ranks := t.Ranks()
	return clip * math.Sqrt(float64(t.Layout.Size(rank))/float64(t.Layout.Size(ranks[len(ranks)-1])))
}

// Vector returns the vector of a round at a rank; clip is the largest rank's norm.
func (t *Terms) Vector(rank int, clip float64, rotation [32]byte) (contract.Vector, error) {
	l, err := t.Contract.Lattice(t.Layout.Size(rank), t.normAt(rank, clip), rotation)
	if err != nil {
		return contract.Vector{}, err
	}
	var figures dp.FigureCode
	if t.Job.Training.HeldOut > 0 {
		if figures, err = dp.NewFigureCode(l.B2(), l.MaxSymbol(), t.Job.Privacy.ScoreNoise); err != nil {
			return contract.Vector{}, fmt.Errorf("privacy.score_noise: %w", err)
		}
	}
	var count dp.CountCode
	if t.Clipping != nil {
		if count, err = dp.NewCountCode(l.B2()+figures.B2(), l.MaxSymbol(), t.Width(), t.countNoise()); err != nil {
			return contract.Vector{}, err
		}
	}
	return t.Contract.Vector(l, count, figures)
}

// Width is the standard deviation of a release's noise over the norm bound: the noise
// multiplier, or what devices' noise comes to where all that are expected send some.
func (t *Terms) Width() float64 {
	if t.Own.Multiplier == 0 {
		return t.NoiseMultiplier
	}
	return max(t.NoiseMultiplier, t.Own.Multiplier*math.Sqrt(max(float64(t.Own.Max), t.Job.ExpectedCohort()))/t.Job.NoiseScale())
}

// Rho is the noise in a released mean at the largest rank, as its expected L2 norm over the clip norm, beyond which no
// mean is: of a job without noise 0. Of a job that stands for a larger fleet it is that fleet's.
func (t *Terms) Rho() float64 {
	units := t.Units * t.weight()
	if s := t.Job.Privacy.SimulatedCohort; s > 0 {
		units *= float64(s) / (t.Job.Cohort.SamplingRate * float64(t.Job.Cohort.Population))
	}
	return t.Width() * t.cancelled() * math.Sqrt(float64(t.Layout.Size(slices.Max(t.Ranks())))) / units
}

// weight is what a unit's update counts in the mean over all of them.
func (t *Terms) weight() float64 { return cmp.Or(t.Job.Training.MeanWeight, 1) }

// decode turns the noisy sum into the mean update of the expected number of
// units and the largest rank's clip norm in the next round; clip is that in this one.
// The step of the norm is a factor, so that ranks whose norms stand in fixed proportions
// fit one norm together. kept is the share of the units that the sum is of.
func (t *Terms) decode(v contract.Vector, clip float64, sum []int64, kept float64) (mean []float32, next float64, err error) {
	d, units := v.Lattice.D(), kept*t.Units
	groups := float64(max(1, v.Groups)) // each of which is counted by itself
	count := sum[d : d+v.Count.Coordinates]
	if mean, err = v.Lattice.DecodeMean(sum[:d], units*t.weight()); err != nil || t.Clipping == nil {
		return mean, clip, err
	}
	next, err = t.Clipping.Next(clip, v.Count.Decode(count)/groups, units)
	return mean, next, err
}

// fleetMetrics is what units measured of the examples that they do not train on, of the adapter that the
// round began with; nil if the job asks for nothing, or the noise leaves nothing of it.
func (t *Terms) fleetMetrics(d *Draw, version uint64, sum []int64, event dp.Event, devices int, shares uint64) *metric.Fleet {
	v := d.vector
	if v.Figures.Size() == 0 || event.Kind == dp.KindNoiseOnly {
		return nil
	}
	h, ok := contract.DecodeMetrics(v.Figures, sum[v.Size()-v.Figures.Size():], math.Sqrt(d.added(event.Sigma2, devices, shares)), len(t.Job.Labels))
	groups := float64(max(1, v.Groups)) // each of which says what it found
	h.Units.Mean, h.Units.Noise = h.Units.Mean/groups, h.Units.Noise/groups
	// Of the expected number, which is public: how many there were follows from hidden coins.
	d.silent = metric.Noisy{Mean: d.kept*t.Units - h.Units.Mean, Noise: h.Units.Noise}
	if !ok {
		return nil
	}
	f := &metric.Fleet{Rank: d.rank, Version: int(version), Units: h.Units, Loss: h.Loss, Speed: h.Speed}
	f.Silent = d.silent
	if t.Method.Task.Judged() {
		f.Accuracy = h.Right
	}
	return f
}

// added is the variance of a coordinate's noise in a release: what the event charges or, where devices add their own,
// what so many and the coordinator in place of more added, which is as much or more. Where shards are trimmed, part of
// that is gone with them.
func (d *Draw) added(charged dp.Variance, devices int, shares uint64) float64 {
	if d.vector.Own != (dp.Variance{}) {
		return d.vector.Own.Float() * (float64(devices) + float64(shares))
	}
	return charged.Float() * d.spread
}

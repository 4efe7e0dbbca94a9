package coordinator

import (
	"cmp"
	"fmt"
	"math"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// normAt is the clip norm of a round at a rank where clip is the largest rank's: the
// same, or with privacy.clip_by_rank that of as many values with the same root mean
// square. It is made of nothing but the job and the rank, which are public.
func (t *terms) normAt(rank int, clip float64) float64 {
	if !t.job.Privacy.ClipByRank {
		return clip
	}
	ranks := t.ranks()
	return clip * math.Sqrt(float64(t.layout.Size(rank))/float64(t.layout.Size(ranks[len(ranks)-1])))
}

// vector of a round at a rank; clip is the largest rank's norm.
func (t *terms) vector(rank int, clip float64, rotation [32]byte) (contract.Vector, error) {
	l, err := t.contract.Lattice(t.layout.Size(rank), t.normAt(rank, clip), rotation)
	if err != nil {
		return contract.Vector{}, err
	}
	var figures dp.FigureCode
	if t.job.Training.HeldOut > 0 {
		if figures, err = dp.NewFigureCode(l.B2(), l.MaxSymbol(), t.job.Privacy.ScoreNoise); err != nil {
			return contract.Vector{}, fmt.Errorf("privacy.score_noise: %w", err)
		}
	}
	var count dp.CountCode
	if t.clipping != nil {
		if count, err = dp.NewCountCode(l.B2()+figures.B2(), l.MaxSymbol(), t.width(), t.countNoise()); err != nil {
			return contract.Vector{}, err
		}
	}
	return t.contract.Vector(l, count, figures)
}

// width is the standard deviation of a release's noise over the norm bound: the noise
// multiplier, or what devices' noise comes to where all that are expected send some.
func (t *terms) width() float64 {
	if t.own.Multiplier == 0 {
		return t.z
	}
	return max(t.z, t.own.Multiplier*math.Sqrt(max(float64(t.own.Max), t.job.ExpectedCohort()))/t.job.NoiseScale())
}

// weight is what a unit's update counts in the mean over all of them.
func (t *terms) weight() float64 { return cmp.Or(t.job.Training.MeanWeight, 1) }

// decode turns the noisy sum into the mean update of the expected number of
// units and the largest rank's clip norm in the next round; clip is that in this one.
// The step of the norm is a factor, so that ranks whose norms stand in fixed proportions
// fit one norm together. kept is the share of the units that the sum is of.
func (t *terms) decode(v contract.Vector, clip float64, sum []int64, kept float64) (mean []float32, next float64, err error) {
	d, units := v.Lattice.D(), kept*t.units
	count := sum[d : d+v.Count.Coordinates]
	if mean, err = v.Lattice.DecodeMean(sum[:d], units*t.weight()); err != nil || t.clipping == nil {
		return mean, clip, err
	}
	next, err = t.clipping.Next(clip, v.Count.Decode(count), units)
	return mean, next, err
}

// fleetMetrics is what units measured of the examples that they do not train on, of the adapter that the
// round began with; nil if the job asks for nothing, or the noise leaves nothing of it.
func (t *terms) fleetMetrics(d *Draw, version uint64, sum []int64, event dp.Event, devices int, shares uint64) *metric.Fleet {
	v := d.vector
	if v.Figures.Size() == 0 || event.Kind == dp.KindNoiseOnly {
		return nil
	}
	variance := event.Sigma2.Float()
	if v.Own != (dp.Variance{}) { // what was added in all, which is as much or more
		variance = v.Own.Float() * (float64(devices) + float64(shares))
	}
	h, ok := contract.DecodeMetrics(v.Figures, sum[v.Size()-v.Figures.Size():], math.Sqrt(variance), len(t.job.Labels))
	if !ok {
		return nil
	}
	f := &metric.Fleet{Rank: d.rank, Version: int(version), Units: h.Units, Loss: h.Loss, Speed: h.Speed}
	if t.method.Task.Judged() {
		f.Accuracy = h.Right
	}
	return f
}

package audit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
)

// release makes the sum, has it released, and notes what that shows.
func (r *run) release(ctx context.Context, d *core.Draw, o outcome, online []bool, a Attendance) error {
	sum, exact := make([]int64, d.Size()), make([]int64, d.Size())
	if !o.noiseOnly {
		shards := make([][]int64, len(o.parts))
		talk := r.codes(d.ID())
		for i, members := range o.parts {
			var err error
			if shards[i], err = r.shard(d, members, talk); err != nil {
				return err
			}
			addTo(exact, shards[i])
			if err := r.own(d, shards[i], len(members)); err != nil {
				return err
			}
		}
		if err := r.core.Combine(d, sum, shards); err != nil {
			return err
		}
	}
	if r.conform != nil && r.cfg.Job.Shard.Trim > 0 { // what is left is no sum of all
		copy(exact, sum)
	}
	var noise dp.Noise
	if r.core.Own().Multiplier > 0 { // what is missing has another variance in each round
		noise = dp.NewSampler(r.core.Noise(d))
	} else {
		pool, err := dp.NewPool(ctx, d.Variance(), d.Size(), r.core.Noise(d))
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		defer pool.Close()
		noise = pool
	}
	if f := r.cfg.plant.noise; f != nil {
		noise = f(noise)
	}
	look := r.conform != nil && r.released < again
	var before core.Snapshot
	var own []int64
	if r.conform != nil {
		own = slices.Clone(sum)
	}
	if look {
		var err error
		if before, err = r.core.Snapshot(); err != nil {
			return err
		}
	}
	event, clip, err := r.core.Release(d, sum, len(o.members), o.noiseOnly, noise)
	if err != nil {
		return err
	}
	written := r.cfg.plant.event == nil || r.cfg.plant.event(&event)
	if r.conform != nil {
		r.conform.sawNoise(r, d, exact, own, sum, o, event)
	}
	if look {
		if err := r.conform.extremes(r, d, event.B2); err != nil {
			return err
		}
		if err := r.conform.repeat(r, d, before, sum, o, clip); err != nil {
			return err
		}
	}
	r.core.Commit(clip)
	if written {
		r.events = append(r.events, event)
	}
	r.released++
	defer func() { r.clip = clip }()
	if r.pass == PassUpdates && !o.noiseOnly {
		r.sawClip(d, clip, o, online)
		return r.sawRelease(d, sum, online, a)
	}
	return nil
}

// shard is the exact sum of one shard: of the canaries in it, and of zeros.
func (r *run) shard(d *core.Draw, members []int, talk []int8) ([]int64, error) {
	if members == nil {
		return nil, nil
	}
	l := d.Lattice()
	sum := make([]int64, d.Size())
	delta, symbols := make([]float32, l.Dim()), make([]int32, d.Size())
	for _, i := range members {
		clear(delta)
		clear(symbols)
		if i >= len(r.in) {
			d.Count().Encode(symbols[l.D():], r.within()) // with no update
			for k, s := range symbols[l.D():] {
				sum[l.D()+k] += int64(s)
			}
			continue
		}
		if !r.in[i] {
			continue
		}
		if at := r.slot(i, d); at < l.Dim() {
			delta[at] = float32(2 * l.Clip()) // the whole norm, after clipping
		}
		if _, err := l.EncodeInto(symbols[:l.D()], delta, r.cfg.Rand); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		if talk[i] != 0 {
			d.Count().Encode(symbols[l.D():], talk[i] > 0)
		}
		for k, s := range symbols {
			sum[k] += int64(s)
		}
	}
	return sum, nil
}

// each is how many devices of a shard draw their own noise as devices do; that of the others is
// one draw, which costs a probability nothing that counts.
const each = 2

// own adds the noise that so many devices add themselves to their sum.
func (r *run) own(d *core.Draw, sum []int64, devices int) error {
	own := d.Own()
	if f := r.cfg.plant.own; f != nil {
		own = f(own)
	}
	if own == (dp.Variance{}) || sum == nil {
		return nil
	}
	sampler := dp.NewSampler(r.cfg.Rand)
	for range min(each, devices) {
		one := make([]int32, len(sum))
		if err := dp.AddOwn(one, own, sampler); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		for i, x := range one {
			sum[i] += int64(x)
		}
	}
	if devices <= each {
		return nil
	}
	all, err := own.Times(uint64(devices - each))
	if err == nil {
		err = sampler.AddNoise(sum, all)
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// addTo adds a sum to another.
func addTo(sum, more []int64) {
	for i, x := range more {
		sum[i] += x
	}
}

// slot is the coordinate of a canary in a round, its own. If there are fewer
// values than canaries those with larger slots contribute nothing: others each round.
func (r *run) slot(canary int, d *core.Draw) int {
	n := uint64(len(r.in))
	return int((uint64(canary) + d.ID()*uint64(d.Lattice().Dim())) % n)
}

// within is what the adversary's devices say in the clipping count, all of them the
// same: it keeps the clip norm about where it began, away from its ends.
func (r *run) within() bool { return r.clip > r.cfg.Job.Privacy.ClipNorm }

// noiseOf is the standard deviation of a canary's coordinate in the decoded sum, in
// contributions: that of the noise, and of the rounding of those that are in.
func (r *run) noiseOf(d *core.Draw) float64 {
	l := d.Lattice()
	spacing := l.Delta() / l.Clip()
	rounding := max(0, spacing*spacing*float64(l.B2())-1) / float64(l.D())
	others := r.core.Job().Cohort.SamplingRate * float64(len(r.in)) / 2
	variance := d.Variance().Float()
	if own := d.Own(); own != (dp.Variance{}) {
		variance = own.Float() * max(float64(r.core.Own().Max), r.core.Job().ExpectedCohort())
	}
	return math.Sqrt(spacing*spacing*variance + others*rounding)
}

package audit

import (
	"hash/fnv"
	"math"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/round"
)

// sawRelease adds what a released sum says of each canary: the likelihood of its
// coordinate with and without it.
func (r *run) sawRelease(d *core.Draw, noisy []int64, online []bool, a Attendance) error {
	l := d.Lattice()
	mean, err := l.DecodeMean(noisy[:l.D()], 1)
	if err != nil {
		return err
	}
	s := r.noiseOf(d)
	rate := r.rate(a)
	for i := range r.signal {
		if at := r.slot(i, d); online[i] && at < len(mean) {
			y := float64(mean[at]) / l.Clip()
			r.signal[i] += math.Log1p(rate * math.Expm1(min((2*y-1)/(2*s*s), 600)))
		}
	}
	return nil
}

// rate is the chance that a canary that is in and there is in a round's sum.
func (r *run) rate(a Attendance) float64 {
	turns := float64(round.Unmasking-round.Collecting) + 1
	return r.cfg.Job.Cohort.SamplingRate * (1 - a.Dropout/turns)
}

// codes are what canaries say in a round's clipping count: some of them +1 or -1, in a
// known order that differs from round to round, the others nothing.
func (r *run) codes(id uint64) []int8 {
	out := make([]int8, len(r.in))
	if r.pass == PassUpdates {
		for i := range r.talkers {
			h := fnv.New64a()
			h.Write([]byte{byte(i), byte(i >> 8), byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24), 'c'})
			x := h.Sum64()
			x ^= x >> 31
			x *= 0x9e3779b97f4a7c15
			out[i] = int8(x>>62&1)*2 - 1
		}
	}
	return out
}

// sawClip notes what the next clip norm says of the count that it follows from, if
// that count were exact. What the adversary's devices said in it is known.
func (r *run) sawClip(d *core.Draw, next float64, o outcome, online []bool) {
	c := r.cfg.Job.Clipping
	if !c.Adaptive || next <= c.Min || next >= c.Max {
		return
	}
	step := math.Log(r.clip/next) / c.Rate
	count := 2 * (step - 0.5 + c.Quantile) * r.core.Units()
	for _, member := range o.members {
		switch {
		case member < len(r.in):
		case r.within():
			count--
		default:
			count++
		}
	}
	n := r.talkers
	f := factor{adds: make([]int8, n), like: make([]float64, 2*n+1)}
	codes := r.codes(d.ID())
	for i := range n {
		if online[i] {
			f.adds[i] = codes[i]
		}
	}
	sum := 0.0
	for k := range f.like {
		off := float64(k-n) - count
		f.like[k] = math.Exp(-8 * off * off)
		sum += f.like[k]
	}
	if sum > 1e-9 {
		r.counts = append(r.counts, f)
	}
}

// sawFate notes what a round's end says of how many canaries were drawn: whether there
// was a shard, and whether it was released. The other devices are known, with their coins
// and when they left; of several shards it does not show which failed.
func (r *run) sawFate(o outcome, groups int, cohort []int, online []bool, fates map[int]round.State) {
	cut, stay := 0, 0
	for _, member := range cohort {
		if member >= len(r.in) && fates[member] > round.Keying {
			cut++
			if fates[member] == stays {
				stay++
			}
		}
	}
	n, masking, most := len(r.in), r.cfg.Job.Masking(), r.cfg.Job.Shard.Size
	if groups > 1 || cut > most {
		return
	}
	f := factor{adds: make([]int8, n), like: make([]float64, 2*n+1)}
	for i := range n {
		if online[i] {
			f.adds[i] = 1
		}
	}
	cuts, whole := len(o.sizes) == 1, o.released && !o.noiseOnly
	for k := range n + 1 {
		like := 1e-9
		t, err := masking.Threshold(max(2, cut+k))
		switch {
		case cut+k > most:
			like = 1 // chance says whom the shard has no room for
		case (cut+k >= masking.ShardMin) != cuts:
		case !cuts || err == nil && (stay >= t) == whole:
			like = 1
		}
		f.like[n+k] = like
	}
	r.ends = append(r.ends, f)
}

package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/job"
)

// conformity is what the checks look at, of all runs of one pass.
type conformity struct {
	seed    uint64
	noise   *residuals // of releases
	own     *residuals // of devices' own, before the coordinator adds any
	cohorts *cohorts

	decoded, differs int // releases that were made again from the noisy sum; that came out otherwise
	extremal         int
	norm             float64 // the largest squared norm, over the ledger's B2
	unwritten        int     // rounds that were released, or drawn and given up, without a charge before
	hits             *Check
}

func newConformity(j job.Job, seed uint64) *conformity {
	return &conformity{seed: seed, noise: newResiduals(seed), own: newResiduals(seed + 1), cohorts: newCohorts(j)}
}

func (c *conformity) newRun() {
	c.noise.newRun()
	c.own.newRun()
	c.cohorts.newRun()
}

// again is how many releases of a run are made again.
const again = 3

// repeat makes a release again from the state before, of a sum that has its noise, and adds none:
// the adapter, the clip norm and the figures that come out are the same only if all of them are
// made from the noisy sum.
func (c *conformity) repeat(r *run, d *core.Draw, before core.Snapshot, noisy []int64, o outcome, clip float64) error {
	after, err := r.core.Snapshot()
	if err != nil {
		return err
	}
	fleet := d.Fleet()
	if err := r.core.Restore(before); err != nil {
		return err
	}
	_, next, err := r.core.Release(d, noisy, len(o.members), o.noiseOnly, silent{})
	if err != nil {
		return err
	}
	second, err := r.core.Snapshot()
	if err != nil {
		return err
	}
	c.decoded++
	same := next == clip && bytes.Equal(after.Adapter, second.Adapter) && bytes.Equal(after.Optimizer, second.Optimizer)
	if f := d.Fleet(); (f == nil) != (fleet == nil) || f != nil && *f != *fleet {
		same = false
	}
	if !same {
		c.differs++
	}
	return r.core.Restore(after)
}

// silent is no noise.
type silent struct{}

func (silent) AddNoise([]int64, dp.Variance) error { return nil }

// extremes encodes updates far beyond the clip norm and holds what is sent against the ledger's B2:
// all along one value, spread over all, and as a device might send that means harm.
func (c *conformity) extremes(r *run, d *core.Draw, b2 int64) error {
	l := d.Lattice()
	rng := rand.New(rand.NewPCG(c.seed, d.ID()))
	symbols := make([]int32, d.Size())
	for kind := range 3 {
		delta := make([]float32, l.Dim())
		for i := range delta {
			switch kind {
			case 0:
				delta[rng.IntN(len(delta))] = float32(3 * l.Clip())
			case 1:
				delta[i] = float32(float64(rng.IntN(2)*2-1) * l.Clip())
			default:
				delta[i] = float32(1e3 * l.Clip() * rng.NormFloat64())
			}
			if kind == 0 {
				break
			}
		}
		clear(symbols)
		if _, err := l.EncodeInto(symbols[:l.D()], delta, r.cfg.Rand); err != nil {
			return fmt.Errorf("audit: an extremal update: %w", err)
		}
		d.Count().Encode(symbols[l.D():], true)
		norm2 := 0.0
		for _, s := range symbols {
			norm2 += float64(s) * float64(s)
		}
		// What is sent may be anywhere that the encoder's own bound lets it be; an update without
		// rounding has the clip norm over the spacing of the lattice.
		plain := l.Clip() / l.Delta() * (1 - 1e-4)
		c.norm = max(c.norm, norm2/float64(b2), plain*plain/float64(b2))
		c.extremal++
	}
	return nil
}

// leastVariance of a coordinate, in squared grid units, is from where a discrete Gaussian with a
// uniform number added is like a continuous one.
const leastVariance = 4

// sawNoise takes the noise of a release: sum is without any, own with the devices', noisy with all.
func (c *conformity) sawNoise(r *run, d *core.Draw, sum, own, noisy []int64, o outcome, e dp.Event) {
	noise := func(of []int64) []int64 {
		out := make([]int64, len(sum))
		for i := range out {
			out[i] = of[i] - sum[i]
		}
		return out
	}
	values := d.Lattice().D()
	if e.Own == (dp.OwnNoise{}) {
		if v := e.NoiseMultiplier * e.NoiseMultiplier * e.NoiseScale * e.NoiseScale * float64(e.B2); v >= leastVariance {
			c.noise.add(noise(noisy), values, v)
		}
		return
	}
	if r.cfg.Job.Shard.Trim > 0 { // which sums are left hangs on the noise
		return
	}
	one, members := e.Own.Multiplier*e.Own.Multiplier*float64(e.B2), len(o.members)
	if members > 0 {
		c.own.add(noise(own), values, one*float64(members))
	}
	all := members
	if r.core.Own().Max > 0 {
		all = max(all, r.core.Own().Max)
	}
	if o.noiseOnly {
		all = max(all, int(e.Own.Honest))
	}
	c.noise.add(noise(noisy), values, one*float64(all))
}

// checks are all but those of the ledger.
func (c *conformity) checks(r *run) []Check {
	j := r.cfg.Job
	out := c.noise.checks()
	own := skipped(CheckOwn, "devices add none")
	if j.OwnNoise() {
		own = skipped(CheckOwn, "no sum of devices was released, or shards are trimmed")
		if c.own.rounds > 0 {
			low, high := ratios(c.own.all.n, checkLevel)
			own = within(CheckOwn,
				fmt.Sprintf("its variance over what the devices owe, of %d coordinates in %d rounds", len(c.own.each), c.own.rounds),
				c.own.all.sum/float64(c.own.all.n), low, high, checkLevel)
		}
	}
	out = append(out, own)
	decoded := skipped(CheckDecoded, "nothing was released")
	if c.decoded > 0 {
		decoded = within(CheckDecoded, fmt.Sprintf("of %d releases, those that are others than their noisy sums make", c.decoded),
			float64(c.differs), 0, 0, 0)
	}
	out = append(out, decoded)
	out = append(out, c.cohorts.checks()...)
	if c.hits != nil {
		out = append(out, *c.hits)
	}
	norm := skipped(CheckNorm, "nothing was released")
	if c.extremal > 0 {
		norm = within(CheckNorm, fmt.Sprintf("largest squared norm of %d, over the ledger's sensitivity", c.extremal),
			c.norm, 0, 1, 0)
	}
	out = append(out, norm)
	return out
}

// conclude makes the checks, with the ledger of one run: those of others have the same, of other coins.
func (c *conformity) conclude(r *run) []Check {
	said, err := r.core.Budget().Guarantee(accounting.Epsilon, r.events)
	out := c.checks(r)
	if err != nil {
		return append(out, Check{Name: CheckLedger, Statistic: "its epsilon", Verdict: Flawed, Why: err.Error()})
	}
	out = append(out, ledger(r.events, said, r.played, c.cohorts.rate())...)
	if c.unwritten > 0 {
		i := slices.IndexFunc(out, func(k Check) bool { return k.Name == CheckCharged })
		out[i].Verdict = Flawed
		out[i].Why = fmt.Sprintf("%d rounds were released, or drawn and given up, and nothing was written down before", c.unwritten)
	}
	return out
}

// sawQuorum has hits dealt once, for the fewest that rounds are drawn of.
func (c *conformity) sawQuorum(j job.Job, groups, ready int, charged float64) {
	if c.hits == nil {
		h := hits(j, groups, ready, charged, c.seed)
		c.hits = &h
	}
}

// flawed is whether any check says so.
func flawed(checks []Check) bool {
	return slices.ContainsFunc(checks, func(c Check) bool { return c.Verdict == Flawed })
}

// alarms is what all checks together may call a sound job, by chance.
func alarms(checks []Check) float64 {
	sum := 0.0
	for _, c := range checks {
		sum += c.Alarm
	}
	return min(sum, FalseAlarms)
}

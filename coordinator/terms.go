package coordinator

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/wasm/program"
)

// terms are the constants that follow from the job and the base: fixed before
// the first round, never recomputed from what happens.
type terms struct {
	job      Job
	given    Job // before anything followed from the base
	base     *model.Base
	layout   *model.Layout
	method   model.Method
	contract contract.Terms // what devices derive too

	quorum   job.Quorum // when a round may be drawn
	units    float64    // expected number of contributions to a round: the denominator
	z        float64    // noise multiplier of the budget's guarantee
	own      job.Own    // what devices add themselves for it
	bits     int        // width of a masked coordinate at the largest rank
	budget   accounting.Budget
	clipping *dp.AdaptiveClip // nil: the clip norm stays

	compact  map[string]bool // matrices that devices keep as 4-bit codes
	baseBlob *model.Blob     // reads the weights where they lie
	baseRef  wire.Blob
	start    []byte // hash of the adapter that the job begins with; nil: the seed's
}

// newTerms refuses a job that does not fit its base or cannot meet its target.
func newTerms(job Job, base *model.Base) (*terms, error) {
	if base == nil {
		return nil, refuseJob("base: none is loaded")
	}
	given := job
	job = job.ForBase(base.Config).Derived()
	if err := job.Validate(); err != nil {
		return nil, err
	}
	if err := job.CheckBase(base); err != nil {
		return nil, err
	}
	t, err := sized(job, base.Config)
	if err != nil {
		return nil, err
	}
	t.given, t.base = given, base
	if job.Training.CompactBase {
		if t.compact = program.Compactable(base); len(t.compact) == 0 {
			return nil, refuseJob("training.compact_base is set, but no matrix of the base is stored as NF4")
		}
	}
	if t.baseBlob, err = base.View(); err != nil {
		return nil, fmt.Errorf("coordinator: base: %w", err)
	}
	sum, err := base.SHA256()
	if err != nil {
		return nil, fmt.Errorf("coordinator: base: %w", err)
	}
	t.baseRef = wire.Blob{SHA256: sum, Size: uint64(t.baseBlob.Size())}
	acct, err := dp.ParseAccountant(job.Privacy.Accountant)
	if err != nil {
		return nil, refuseJob("privacy: %w", err)
	}
	if t.quorum, err = job.Quorum(); err != nil {
		return nil, err
	}
	t.budget = accounting.Budget{Epsilon: job.Privacy.Epsilon, Delta: job.Delta(), Floor: job.FloorDelta(), Accountant: acct}
	if err := t.calibrate(); err != nil {
		return nil, err
	}
	ranks := t.ranks()
	largest, err := t.vector(ranks[len(ranks)-1], job.Privacy.ClipNorm, [32]byte{})
	if err != nil {
		return nil, refuseJob("wire.%w", err)
	}
	t.bits = t.contract.Bits(largest)
	return t, nil
}

// CheckSize refuses a job whose updates over a base of that shape no round can carry, or whose
// examples are longer than it reads: what a run over the base itself is refused for, before its
// weights are at hand. Of the privacy budget it says nothing.
func CheckSize(job Job, c model.Config) error {
	job = job.ForBase(c).Derived()
	if err := job.Validate(); err != nil {
		return err
	}
	_, err := sized(job, c)
	return err
}

// sized are the terms of a valid job with its defaults, as far as they follow from the base's shape.
func sized(job Job, c model.Config) (*terms, error) {
	t := &terms{job: job, units: job.ExpectedCohort() * job.UnitsPerDevice(), method: job.Method()}
	var err error
	if t.layout, err = model.NewLayout(c, t.method, len(job.Labels)); err != nil {
		return nil, refuseJob("base: %w", err)
	}
	if n := t.layout.Size(slices.Max(t.ranks())); n > quant.MaxDimension {
		return nil, refuseJob("adapter.method trains %d values, of which at most %d can be masked: train fewer, as lora does", n, quant.MaxDimension)
	}
	if most := c.MaxTokens(); job.Adapter.Sequence > most {
		return nil, refuseJob("adapter.sequence is %d, the base has %d positions", job.Adapter.Sequence, most)
	}
	if t.contract, err = contractOf(job).Terms(); err != nil {
		return nil, refuseJob("wire.%w", err)
	}
	if c := job.Clipping; c.Adaptive {
		t.clipping = &dp.AdaptiveClip{Quantile: c.Quantile, Rate: c.Rate, Min: c.Min, Max: c.Max}
	}
	return t, t.checkNorms()
}

// checkNorms refuses a job whose clip norm is, or may become, one that has no
// lattice: no round could be drawn from there on, not even after a restart.
func (t *terms) checkNorms() error {
	norms := map[string]float64{"privacy.clip_norm": t.job.Privacy.ClipNorm}
	if t.clipping != nil {
		norms["clipping.min"], norms["clipping.max"] = t.clipping.Min, t.clipping.Max
	}
	ranks := t.ranks()
	for _, rank := range []int{ranks[0], ranks[len(ranks)-1]} {
		for key, norm := range norms {
			if _, err := t.contract.Lattice(t.layout.Size(rank), t.normAt(rank, norm), [32]byte{}); err != nil {
				return refuseJob("%s at rank %d: %w", key, rank, err)
			}
		}
	}
	return nil
}

func blobRef(b []byte) wire.Blob {
	return wire.Blob{SHA256: sha256.Sum256(b), Size: uint64(len(b))}
}

// ranks lists the ranks that a round may draw.
func (t *terms) ranks() []int { return t.job.Ranks() }

// release is what a round's noise is made from; cert says how its cohort was drawn.
func (t *terms) release(round uint64, b2 int64, cert dp.Certificate) dp.ReleaseSpec {
	if t.job.Privacy.None {
		return dp.ReleaseSpec{Round: round, SamplingRate: cert.AccountedRate(), B2: b2, Unnoised: true, Certificate: cert.Hash()}
	}
	r := dp.ReleaseSpec{
		Round: round, SamplingRate: cert.AccountedRate(), B2: b2,
		NoiseMultiplier: t.z, NoiseScale: t.job.NoiseScale(), Certificate: cert.Hash(),
		Own: t.own.OwnNoise, Fixed: t.job.Fixed(),
	}
	if r.SamplingRate < 1 {
		r.Hit = t.quorum.Hit
	}
	if t.job.Simulated() {
		r.SimulatedRate = t.job.BudgetRate()
	}
	if t.job.Providers.Max > 0 {
		r.ProviderRate, r.Hidden = t.job.Providers.SamplingRate, t.job.Hides()
	}
	return r
}

// calibrate chooses z, or takes the job's, and verifies on the discrete noise
// that will really be drawn that all rounds stay within the budget, whichever
// ranks they draw.
func (t *terms) calibrate() error {
	p := t.job.Privacy
	if p.None {
		return nil
	}
	z := p.NoiseMultiplier
	if z == 0 {
		var err error
		if z, err = accounting.CalibrateEvent(p.Epsilon, t.budget.Delta-t.budget.Floor, t.budget.Accountant, t.job.BudgetRounds(t.quorum)); err != nil {
			return refuseJob("privacy: epsilon %v at delta %.3g over %d rounds cannot be met: %w", p.Epsilon, t.budget.Delta, t.job.Rounds, err)
		}
	}
	t.setNoise(z)
	if err := t.checkOwn(); err != nil {
		return err
	}
	if _, err := t.vector(t.ranks()[0], p.ClipNorm, [32]byte{}); err != nil {
		return refuseJob("clipping.count_noise %v over %.4g expected contributions: %w", t.job.Clipping.CountNoise, t.budgetUnits(), err)
	}
	err := t.verifyBudget()
	if err == nil {
		return nil
	}
	if !errors.Is(err, accounting.ErrBudget) || p.NoiseMultiplier != 0 {
		return refuseJob("privacy: noise_multiplier %v does not keep %d rounds within epsilon %v: %w", z, t.job.Rounds, p.Epsilon, err)
	}
	// The discrete noise costs more than the continuous one that z was calibrated
	// with: next to nothing, or several percent where it is so small that only
	// integer orders hold for it. Find the least z that does, to 1e-5.
	low, high := z, z
	for step := 1e-4; ; step *= 2 {
		if high = z * (1 + step); step > 8 {
			return refuseJob("privacy: epsilon %v over %d rounds cannot be met with discrete noise: %w", p.Epsilon, t.job.Rounds, err)
		}
		if t.setNoise(high); t.verifyBudget() == nil {
			break
		}
		low = high
	}
	for high-low > 1e-5*high {
		if t.setNoise((low + high) / 2); t.verifyBudget() == nil {
			high = t.z
		} else {
			low = t.z
		}
	}
	t.setNoise(math.Ceil(high*1e9) / 1e9)
	return t.verifyBudget()
}

// setNoise takes a noise multiplier, and what devices add for it.
func (t *terms) setNoise(z float64) {
	t.z, t.own = z, t.job.Own(z)
	t.contract.Job.Own = contract.Own{}
	if t.own.Multiplier > 0 {
		t.contract.Job.Own = contract.Own{Noise: t.own.Multiplier, Delta: t.budget.Delta, Rounds: uint64(t.job.Rounds)}
	}
}

// checkOwn refuses own noise that the uplink's lattice is too coarse for, with the
// coarsest that is not.
func (t *terms) checkOwn() error {
	if t.own.Multiplier == 0 {
		return nil
	}
	least := t.layout.Size(t.ranks()[0])
	fits := func(uplink string) error {
		j := t.contract.Job
		j.Uplink = uplink
		terms, err := j.Terms()
		if err != nil {
			return err
		}
		l, err := terms.Lattice(least, t.job.Privacy.ClipNorm, [32]byte{})
		if err != nil {
			return err
		}
		v, err := terms.Vector(l, dp.CountCode{}, dp.FigureCode{})
		if err != nil {
			return err
		}
		return terms.Masking(v).Validate()
	}
	err := fits(t.job.Wire.Uplink)
	if err == nil {
		return nil
	}
	for _, name := range quant.SchemeNames() {
		if fits(name) == nil {
			return refuseJob("privacy.own_noise %.4g over %d values: %w; wire.uplink: %s would do", t.own.Multiplier, least, err, name)
		}
	}
	return refuseJob("privacy.own_noise %.4g over %d values: %w", t.own.Multiplier, least, err)
}

// budgetUnits is the expected number of contributions to a round of the
// population that the budget is about.
func (t *terms) budgetUnits() float64 { return t.units / t.job.NoiseScale() }

// countNoise is the standard deviation of the clipping count's noise in the
// budget's population, in contributions.
func (t *terms) countNoise() float64 {
	if f := t.job.Clipping.CountNoise; f != 0 {
		return f * t.budgetUnits()
	}
	// Andrew et al. 2021 take 5 % of the cohort. In a small one that would leave
	// the update nothing: twice z costs it 3 % more noise.
	return max(0.05*t.budgetUnits(), 2*t.width())
}

// verifyBudget asks for all rounds at the rank that costs the most.
func (t *terms) verifyBudget() error {
	next, err := t.costliest()
	if err != nil {
		return err
	}
	var spent []dp.Event
	if t.job.Rounds > 1 {
		before := next
		before.Count = uint32(t.job.Rounds - 1)
		spent = append(spent, before)
	}
	_, err = t.budget.Allow(spent, next, t.job.Simulated())
	return err
}

// digest identifies the job for the store: every constant, the base, and
// whether it is private.
func (t *terms) digest(private bool) ([32]byte, error) {
	b, err := json.Marshal(constants(t.job))
	if err != nil {
		return [32]byte{}, fmt.Errorf("coordinator: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "starling job 1\x00%t\x00%v\x00%d\x00", private, t.z, len(b))
	h.Write(b)
	h.Write(t.baseRef.SHA256[:])
	h.Write(t.start)
	return [32]byte(h.Sum(nil)), nil
}

// certifiedBy sets the key that certifies rosters, which differs by run.
func (t *terms) certifiedBy(key ed25519.PublicKey) {
	if !t.contract.Job.Masking.Identified {
		t.contract.Job.Masking.Authority = [32]byte(key)
	}
}

// wireJob is what devices are told.
func (t *terms) wireJob(instance [16]byte, private bool) (*wire.Job, error) {
	j := t.job
	millis := func(d interface{ Milliseconds() int64 }) uint32 {
		return uint32(min(d.Milliseconds(), math.MaxUint32))
	}
	w := &wire.Job{
		Instance: instance, Name: j.Name, Labels: j.Labels, Base: t.baseRef,
		RankMin: uint16(j.Adapter.RankMin), HeadOnly: j.Ranks()[0] == 0, Sequence: uint32(j.Adapter.Sequence),
		Announced: j.Training.Announce(), Rounds: uint64(j.Rounds),
		Privacy: wire.Privacy{
			Private: private, SamplingRate: j.Cohort.SamplingRate, NoiseMultiplier: t.z * j.NoiseScale(),
			Delta: t.budget.Delta, Budget: t.budget.Epsilon,
			Population: uint64(j.BudgetPopulation()), Simulated: j.Simulated(), Accountant: string(t.budget.Accountant),
			Noise: j.Privacy.Noise, OwnNoise: t.own.Multiplier, Honest: t.own.Honest,
		},
		Deadlines: wire.Deadlines{
			Gather: millis(j.Deadlines.Gather), Key: millis(j.Deadlines.Key), Share: millis(j.Deadlines.Share),
			Collect: millis(j.Deadlines.Collect), Confirm: millis(j.Deadlines.Confirm), Unmask: millis(j.Deadlines.Unmask),
		},
	}
	contract.AnnounceMethod(t.method, w)
	if j.Training.Dual {
		w.Dual = j.UnitsPerDevice()
	}
	w.HeldOut, w.Scored = j.Training.HeldOut, uint32(j.Training.Scored)
	if j.Privacy.None {
		w.Privacy = wire.Privacy{SamplingRate: j.Cohort.SamplingRate, Population: uint64(j.Cohort.Population)}
	}
	if j.Providers.Max > 0 {
		w.ProviderRate = j.Providers.SamplingRate
	}
	w.Published.Tokenizer = sha256.Sum256(t.base.Tokenizer)
	t.contract.Job.Announce(w)
	var err error
	w.Recipe, err = program.Recipe(j)
	return w, err
}

func seedBytes(seed uint64) []byte { return binary.LittleEndian.AppendUint64(nil, seed) }

package core

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/wasm/program"
)

// Terms are the constants that follow from the job and the base: fixed before
// the first round, never recomputed from what happens.
type Terms struct {
	Job      job.Job
	Given    job.Job // before anything followed from the base
	Base     *model.Base
	Layout   *model.Layout
	Method   model.Method
	Contract contract.Terms // what devices derive too

	Quorum          job.Quorum // when a round may be drawn
	Units           float64    // expected number of contributions to a round: the denominator
	NoiseMultiplier float64    // noise multiplier of the budget's guarantee
	Own             job.Own    // what devices add themselves for it
	Bits            int        // width of a masked coordinate at the largest rank
	Budget          accounting.Budget
	Clipping        *dp.AdaptiveClip // nil: the clip norm stays

	Compact  map[string]bool // matrices that devices keep as 4-bit codes
	BaseBlob *model.Blob     // reads the weights from the file
	BaseRef  wire.Blob
	Start    []byte // hash of the adapter that the job begins with; nil: the seed's
}

// NewTerms refuses a job that does not fit its base or cannot meet its target.
func NewTerms(j job.Job, base *model.Base) (*Terms, error) {
	if base == nil {
		return nil, RefuseJob("base: none is loaded")
	}
	given := j
	j = j.ForBase(base.Config).Derived()
	if err := j.Validate(); err != nil {
		return nil, err
	}
	if err := j.CheckBase(base); err != nil {
		return nil, err
	}
	t, err := sized(j, base.Config)
	if err != nil {
		return nil, err
	}
	t.Given, t.Base = given, base
	if j.Training.CompactBase {
		if t.Compact = program.Compactable(base); len(t.Compact) == 0 {
			return nil, RefuseJob("training.compact_base is set, but no matrix of the base is stored as NF4")
		}
	}
	if t.BaseBlob, err = base.View(); err != nil {
		return nil, fmt.Errorf("core: base: %w", err)
	}
	sum, err := base.SHA256()
	if err != nil {
		return nil, fmt.Errorf("core: base: %w", err)
	}
	t.BaseRef = wire.Blob{SHA256: sum, Size: uint64(t.BaseBlob.Size())}
	acct, err := dp.ParseAccountant(j.Privacy.Accountant)
	if err != nil {
		return nil, RefuseJob("privacy: %w", err)
	}
	if t.Quorum, err = j.Quorum(); err != nil {
		return nil, err
	}
	t.Budget = accounting.Budget{Epsilon: j.Privacy.Epsilon, Delta: j.Delta(), Floor: j.FloorDelta(), Accountant: acct, Observer: j.Observer()}
	if err := t.calibrate(); err != nil {
		return nil, err
	}
	ranks := t.Ranks()
	largest, err := t.Vector(ranks[len(ranks)-1], j.Privacy.ClipNorm, [32]byte{})
	if err != nil {
		return nil, RefuseJob("wire.%w", err)
	}
	t.Bits = t.Contract.Bits(largest)
	return t, nil
}

// CheckSize refuses a job whose updates over a base of that shape no round can carry, or whose examples are longer
// than the base reads. A run refuses the same; this needs no weights. It does not check the privacy budget.
func CheckSize(j job.Job, c model.Config) error {
	j = j.ForBase(c).Derived()
	if err := j.Validate(); err != nil {
		return err
	}
	_, err := sized(j, c)
	return err
}

// smaller names methods whose updates over a base would fit, with the values that each trains.
func smaller(j job.Job, c model.Config) string {
	var fit []string
	for _, m := range []struct {
		name   string
		method model.Method
	}{
		{"lora at rank_max 8", model.Method{RMax: 8, Alpha: 16}},
		{"bitfit", model.Method{RMax: 1, Alpha: 1, Kind: model.MethodBitFit}},
		{"head", model.Method{RMax: 1, Alpha: 1, Kind: model.MethodHead}},
	} {
		m.method.Task = j.Method().Task
		l, err := model.NewLayout(c, m.method, len(j.Labels))
		if err != nil {
			continue
		}
		if n := l.Size(m.method.RMax); n <= quant.MaxDimension {
			fit = append(fit, fmt.Sprintf("%s trains %d", m.name, n))
		}
	}
	if len(fit) == 0 {
		return "take a smaller base"
	}
	return "set adapter.method to one that trains fewer (" + strings.Join(fit, ", ") + "), or take a smaller base"
}

// sized are the terms of a valid j with its defaults, as far as they follow from the base's shape.
func sized(j job.Job, c model.Config) (*Terms, error) {
	t := &Terms{Job: j, Units: j.ExpectedCohort() * j.UnitsPerDevice(), Method: j.Method()}
	var err error
	if t.Layout, err = model.NewLayout(c, t.Method, len(j.Labels)); err != nil {
		return nil, RefuseJob("base: %w", err)
	}
	if n := t.Layout.Size(slices.Max(t.Ranks())); n > quant.MaxDimension {
		return nil, RefuseJob("adapter.method %s trains %d values; an update has at most %d (2^26 less what "+
			"a message carries besides): %s", t.Method.Kind, n, quant.MaxDimension, smaller(j, c))
	}
	if most := c.MaxTokens(); j.Adapter.Sequence > most {
		return nil, RefuseJob("adapter.sequence is %d, the base has %d positions", j.Adapter.Sequence, most)
	}
	if t.Contract, err = contractOf(j).Terms(); err != nil {
		return nil, RefuseJob("wire.%w", err)
	}
	if c := j.Clipping; c.Adaptive {
		t.Clipping = &dp.AdaptiveClip{Quantile: c.Quantile, Rate: c.Rate, Min: c.Min, Max: c.Max}
	}
	return t, errors.Join(t.checkNorms(), t.checkKept())
}

// checkNorms refuses a job whose clip norm is, or may become, one that has no
// lattice: no round could be drawn from there on, not even after a restart.
func (t *Terms) checkNorms() error {
	norms := map[string]float64{"privacy.clip_norm": t.Job.Privacy.ClipNorm}
	if t.Clipping != nil {
		norms["clipping.min"], norms["clipping.max"] = t.Clipping.Min, t.Clipping.Max
	}
	ranks := t.Ranks()
	for _, rank := range []int{ranks[0], ranks[len(ranks)-1]} {
		for key, norm := range norms {
			if _, err := t.Contract.Lattice(t.Layout.Size(rank), t.normAt(rank, norm), [32]byte{}); err != nil {
				return RefuseJob("%s at rank %d: %w", key, rank, err)
			}
		}
	}
	return nil
}

// Ranks lists the ranks that a round may draw.
func (t *Terms) Ranks() []int { return t.Job.Ranks() }

// release is what a round's noise is made from; cert says how its cohort was drawn.
func (t *Terms) ReleaseSpec(round uint64, b2 int64, cert dp.Certificate) dp.ReleaseSpec {
	if t.Job.Privacy.None {
		return dp.ReleaseSpec{Round: round, SamplingRate: cert.AccountedRate(), B2: b2, Unnoised: true, Certificate: cert.Hash()}
	}
	r := dp.ReleaseSpec{
		Round: round, SamplingRate: cert.AccountedRate(), B2: b2,
		NoiseMultiplier: t.NoiseMultiplier, NoiseScale: t.Job.NoiseScale(), Certificate: cert.Hash(),
		Own: t.Own.OwnNoise, Fixed: t.Job.Fixed(), Banded: t.Job.BandedRows(),
	}
	if r.SamplingRate < 1 {
		r.Hit, r.Coalition = t.Quorum.Hit, t.Job.Coalition(t.Quorum)
	}
	if t.Job.Simulated() {
		r.SimulatedRate, r.SimulatedHit = t.Job.BudgetRate(), t.Quorum.Simulated
	}
	if t.Job.Providers.Max > 0 {
		r.ProviderRate, r.Hidden = t.Job.Providers.SamplingRate, t.Job.Hides()
	}
	return r
}

// calibrate chooses z, or takes the job's, and verifies on the discrete noise
// that will really be drawn that all rounds stay within the budget, whichever
// ranks they draw.
func (t *Terms) calibrate() error {
	p := t.Job.Privacy
	if p.None {
		return nil
	}
	z := p.NoiseMultiplier
	if z == 0 {
		var err error
		if z, err = accounting.CalibrateEvent(p.Epsilon, t.Budget.Delta-t.Budget.Floor, t.Budget.Accountant, t.Budget.Observer, t.Job.BudgetRounds(t.Quorum)); err != nil {
			return RefuseJob("privacy: epsilon %v at delta %.3g over %d rounds cannot be met: %w", p.Epsilon, t.Budget.Delta, t.Job.Rounds, err)
		}
	}
	t.setNoise(z)
	if err := t.checkOwn(); err != nil {
		return err
	}
	if _, err := t.Vector(t.Ranks()[0], p.ClipNorm, [32]byte{}); err != nil {
		return RefuseJob("clipping.count_noise %v over %.4g expected contributions: %w", t.Job.Clipping.CountNoise, t.budgetUnits(), err)
	}
	err := t.verifyBudget()
	if err == nil {
		return nil
	}
	if !errors.Is(err, accounting.ErrBudget) || p.NoiseMultiplier != 0 {
		return RefuseJob("privacy: noise_multiplier %v does not keep %d rounds within epsilon %v: %w", z, t.Job.Rounds, p.Epsilon, err)
	}
	// The discrete noise costs more than the continuous one that z was calibrated
	// with: next to nothing, or several percent where it is so small that only
	// integer orders hold for it. Find the least z that does, to 1e-5.
	low, high := z, z
	for step := 1e-4; ; step *= 2 {
		if high = z * (1 + step); step > 8 {
			return RefuseJob("privacy: epsilon %v over %d rounds cannot be met with discrete noise: %w", p.Epsilon, t.Job.Rounds, err)
		}
		if t.setNoise(high); t.verifyBudget() == nil {
			break
		}
		low = high
	}
	for high-low > 1e-5*high {
		if t.setNoise((low + high) / 2); t.verifyBudget() == nil {
			high = t.NoiseMultiplier
		} else {
			low = t.NoiseMultiplier
		}
	}
	t.setNoise(math.Ceil(high*1e9) / 1e9)
	return t.verifyBudget()
}

// setNoise takes a noise multiplier, and what devices add for it.
func (t *Terms) setNoise(z float64) {
	t.NoiseMultiplier, t.Own = z, t.Job.Own(z)
	t.Contract.Job.Own = contract.Own{}
	if t.Own.Multiplier > 0 {
		t.Contract.Job.Own = contract.Own{Noise: t.Own.Multiplier, Delta: t.Budget.Delta, Rounds: uint64(t.Job.Rounds)}
	}
}

// checkOwn refuses own noise that the uplink's lattice is too coarse for, with the
// coarsest that is not.
func (t *Terms) checkOwn() error {
	if t.Own.Multiplier == 0 {
		return nil
	}
	least := t.Layout.Size(t.Ranks()[0])
	fits := func(uplink string) error {
		j := t.Contract.Job
		j.Uplink = uplink
		terms, err := j.Terms()
		if err != nil {
			return err
		}
		l, err := terms.Lattice(least, t.Job.Privacy.ClipNorm, [32]byte{})
		if err != nil {
			return err
		}
		v, err := terms.Vector(l, dp.CountCode{}, dp.FigureCode{})
		if err != nil {
			return err
		}
		return terms.Masking(v).Validate()
	}
	err := fits(t.Job.Wire.Uplink)
	if err == nil {
		return nil
	}
	for _, name := range quant.SchemeNames() {
		if fits(name) == nil {
			return RefuseJob("privacy.own_noise %.4g over %d values: %w; wire.uplink: %s would do", t.Own.Multiplier, least, err, name)
		}
	}
	return RefuseJob("privacy.own_noise %.4g over %d values: %w", t.Own.Multiplier, least, err)
}

// budgetUnits is the expected number of contributions to a round of the
// population that the budget is about.
func (t *Terms) budgetUnits() float64 { return t.Units / t.Job.NoiseScale() }

// countNoise is the standard deviation of the clipping count's noise in the
// budget's population, in contributions.
func (t *Terms) countNoise() float64 {
	if f := t.Job.Clipping.CountNoise; f != 0 {
		return f * t.budgetUnits()
	}
	// Andrew et al. 2021 take 5 % of the cohort. In a small one that would leave
	// the update nothing: twice z costs it 3 % more noise.
	return max(0.05*t.budgetUnits(), 2*t.Width())
}

// verifyBudget asks for all rounds at the rank that costs the most. With banded noise a round that is charged and releases
// nothing costs more than its row: there is room for one, so that any round may end so without passing the budget.
func (t *Terms) verifyBudget() error {
	next, err := t.Costliest()
	if err != nil {
		return err
	}
	next.Count = uint32(t.Job.Rounds)
	var spent []dp.Event
	if t.Job.Banded() {
		charged := next
		charged.Count, charged.Kind = 1, dp.KindCharged
		spent = append(spent, charged)
	}
	_, err = t.Budget.Allow(spent, next, t.Job.Simulated())
	return err
}

// RefuseJob wraps the reason for which a job does not fit its base or cannot meet its target.
func RefuseJob(format string, args ...any) error {
	return fmt.Errorf("%w: %w", job.ErrInvalid, fmt.Errorf(format, args...))
}

// contractOf returns the part of a job that devices derive from, too.
func contractOf(j job.Job) contract.Job {
	return contract.Job{Uplink: j.Wire.Uplink, Providers: j.Providers.Max, Groups: j.Privacy.Groups, Masking: j.Masking()}
}

// Bounds are the announced bounds of a round's start.
func (t *Terms) Bounds() wire.Bounds {
	b := t.Job.Bounds
	return wire.Bounds{A: b.A, B: b.B, Head: b.Head, Bias: b.Bias, Whole: b.Whole, Modules: b.Modules}
}

// startBounds are the same with the published one for each that the job does not give.
func (t *Terms) startBounds() wire.Bounds { return contract.Bounds(t.Bounds()) }

package job

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// MaxPopulation bounds cohort.population: enough for simulations of fifty million devices.
const MaxPopulation = 1 << 26

// ErrInvalid is a job that cannot be run. The text names the relation that does not hold.
var ErrInvalid = errors.New("job")

// noEpsilon is what somebody wants who gives an epsilon that is 0 or infinite.
const noEpsilon = "a job without noise, and without a claim, has privacy.none: true"

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// Validate returns an error that names the first relation of the job's fields that does not hold.
// No other function checks them; what needs the base model is checked when the base is loaded.
func (j Job) Validate() error {
	finite := func(name string, v float64) error {
		if !(v > 0) || math.IsInf(v, 0) {
			if name == "privacy.epsilon" {
				return refuse("privacy.epsilon is %v, must be positive and finite: %s", v, noEpsilon)
			}
			return refuse("%s is %v, must be positive", name, v)
		}
		return nil
	}
	byBase := func(name string, v float64) error { // 0 until the base is known
		if v == 0 {
			return nil
		}
		return finite(name, v)
	}
	between := func(name string, v, lo, hi int) error {
		if v < lo || v > hi {
			return refuse("%s is %d, must be in %d..%d", name, v, lo, hi)
		}
		return nil
	}
	if j.Name == "" || len(j.Name) > 256 {
		return refuse("name has %d bytes, must have 1..256", len(j.Name))
	}
	switch task := j.Method().Task; {
	case j.Task == "" && j.Base != "" && len(j.Labels) == 0: // what has none is checked once the base is known
	case !task.Labelled() && len(j.Labels) > 0:
		return refuse("labels has %d entries, but task %s has none", len(j.Labels), task)
	case task.Labelled() && len(j.Labels) < 2:
		return refuse("labels has %d entries, must have at least 2", len(j.Labels))
	case !task.Writes() && task.String() != "pretrain" && j.Adapter.Answer != 0: // what pretrain has is checked once the base is known
		return refuse("adapter.answer is %d, but only tasks answer, span and pretrain have answers", j.Adapter.Answer)
	}
	if j.BaseFormat != "" && j.BaseFormat != baseNF4 {
		return refuse("base_format is %.40q, must be nf4, or empty for the base as it is stored", j.BaseFormat)
	}
	if j.BaseRevision != "" && !hexadecimal(j.BaseRevision, 40) {
		return refuse("base_revision is %.80q, must be a commit, 40 hexadecimal digits in lower case", j.BaseRevision)
	}
	if j.BaseSHA256 != "" && !hexadecimal(j.BaseSHA256, 64) {
		return refuse("base_sha256 is %.80q, must be 64 hexadecimal digits in lower case", j.BaseSHA256)
	}
	seen := map[string]bool{}
	for i, l := range j.Labels {
		if l == "" || seen[l] {
			return refuse("labels[%d] = %q is empty or there twice", i, l)
		}
		seen[l] = true
	}
	a, co, sh, p := j.Adapter, j.Cohort, j.Shard, j.Privacy
	for _, err := range []error{
		j.About.Check(),
		between("rounds", j.Rounds, 1, 1_000_000),
		between("adapter.rank_max", a.RankMax, 1, 4096),
		between("adapter.rank_min", a.RankMin, 1, a.RankMax),
		byBase("adapter.alpha", a.Alpha),
		byBase("bounds.a", j.Bounds.A),
		byBase("bounds.b", j.Bounds.B),
		byBase("bounds.head", j.Bounds.Head),
		byBase("bounds.bias", j.Bounds.Bias),
		byBase("bounds.whole", j.Bounds.Whole),
		byBase("bounds.modules", j.Bounds.Modules),
		between("adapter.sequence", a.Sequence, 3, 65536),
		between("cohort.population", co.Population, 1, MaxPopulation),
		between("cohort.floor", co.Floor, j.leastFloor(), math.MaxInt32),
		between("cohort.max_enrolled", co.MaxEnrolled, co.Population, 1<<30),
		between("cohort.max_connected", co.MaxConnected, co.Floor, 1<<30),
		between("cohort.max_abandoned", co.MaxAbandoned, 1, 1<<30),
		between("shard.size", sh.Size, 2, secagg.MaxShard),
		between("shard.floor", sh.Floor, 2, sh.Size),
		between("shard.breach_bits", sh.BreachBits, 0, 128),
		between("enrolment.absent in hours", int(j.Enrolment.Absent.Hours()), 2, 1<<20),
		finite("privacy.epsilon", p.Epsilon),
		byBase("privacy.clip_norm", p.ClipNorm),
	} {
		if err != nil {
			return err
		}
	}
	if err := j.Training.Validate(); err != nil {
		return refuse("%w", err)
	}
	if !(co.SamplingRate > 0 && co.SamplingRate <= 1) {
		return refuse("cohort.sampling_rate is %v, must be in (0, 1]", co.SamplingRate)
	}
	if err := j.validateSampling(); err != nil {
		return err
	}
	if !(p.ScoreNoise >= 0 && p.ScoreNoise <= 1) || p.ScoreNoise > 0 && j.Training.HeldOut == 0 {
		return refuse("privacy.score_noise is %v, must be in (0, 1] and needs training.held_out, whose figures it pays for", p.ScoreNoise)
	}
	if !(sh.Corrupt >= 0 && sh.Corrupt < 1) {
		return refuse("shard.corrupt is %v, must be in [0, 1)", sh.Corrupt)
	}
	if !(co.Dropout >= 0 && co.Dropout <= 0.9) {
		return refuse("cohort.dropout is %v, must be in 0..0.9", co.Dropout)
	}
	if !j.Sampled() && (co.Dropout != 0 || co.Quorum != 0) {
		return refuse("cohort.dropout is %v and cohort.quorum %d, which are about cohorts that coins choose: leave them out where "+
			"cohort.sampling_rate is 1, or privacy none", co.Dropout, co.Quorum)
	}
	if co.Quorum < 0 || co.Quorum > co.Population {
		return refuse("cohort.quorum is %d, must be in 0..cohort.population = %d", co.Quorum, co.Population)
	}
	// Shards of a cohort differ by at most one in size: the smallest has at least
	// n/ceil(n/size) rounded down, and must reach the floor for every n from the
	// cohort's floor on.
	least := smallestShard(co.Floor, sh.Size)
	if j.Fixed() && co.Size <= sh.Size { // never cut
		least = co.Floor
	}
	if least < sh.Floor && !j.Sampled() && !j.Alone() {
		return refuse("shard.floor is %d, but a cohort of %d cuts into shards of %d: so small a shard withstands no share shard.corrupt = %v of devices that collude "+
			"with the coordinator",
			sh.Floor, co.Floor, least, sh.Corrupt)
	}
	if err := errors.Join(j.validateGroups(), j.validateTrim()); err != nil {
		return err
	}
	if err := j.validatePrivacy(); err != nil {
		return err
	}
	if err := j.validateMethod(); err != nil {
		return err
	}
	if err := j.validateUnit(); err != nil {
		return err
	}
	if err := j.Server.Validate(); err != nil {
		return err
	}
	if j.Server.Average < 0 || j.Server.Average > j.Rounds {
		return refuse("server.average is %d, must be in 0..rounds = %d: it is a number of last rounds", j.Server.Average, j.Rounds)
	}
	if err := quant.CheckNames(j.Wire.Downlink, j.Wire.DownlinkCodec); err != nil {
		return refuse("wire: %w", err)
	}
	masked, err := j.contract().Terms()
	if err != nil {
		return refuse("wire.%w", err)
	}
	norm := p.ClipNorm
	if norm == 0 {
		norm = 1
	}
	lattice, err := masked.Lattice(64, norm, [32]byte{})
	if err != nil {
		return refuse("wire.uplink with privacy.clip_norm %v: %w", p.ClipNorm, err)
	}
	if err := masked.Masking(contract.Vector{Lattice: lattice}).Validate(); err != nil {
		return refuse("shard (corrupt %v, breach_bits %d): %w", sh.Corrupt, sh.BreachBits, err)
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{
		{"gather", j.Deadlines.Gather}, {"key", j.Deadlines.Key}, {"share", j.Deadlines.Share},
		{"collect", j.Deadlines.Collect}, {"confirm", j.Deadlines.Confirm}, {"unmask", j.Deadlines.Unmask},
		{"min", j.Deadlines.Min}, {"reconnect", j.Deadlines.Reconnect}, {"grace", j.Deadlines.Grace},
	} {
		if d.v < time.Millisecond || d.v > 30*24*time.Hour {
			return refuse("deadlines.%s is %v, must be in 1ms..720h", d.name, d.v)
		}
	}
	if e := j.Deadlines.Enough; !(e > 0 && e <= 1) {
		return refuse("deadlines.enough is %v, must be in (0, 1]", e)
	}
	if n := len(j.Enrolment.Secret); n != 0 && (n < 16 || n > 64) {
		return refuse("enrolment.secret has %d bytes, must have 16..64 or none", n)
	}
	return nil
}

// validateGroups refuses groups that follow from something else, or that no device could
// hold against its own key, and a number of them that makes no shards.
func (j Job) validateGroups() error {
	sh, co := j.Shard, j.Cohort
	switch {
	case sh.Groups == 0:
		return nil
	case sh.Groups < 0 || sh.Groups > contract.MaxGroups:
		return refuse("shard.groups is %d, must be in 0..%d", sh.Groups, contract.MaxGroups)
	case j.Sampled():
		return refuse("shard.groups is %d and cohort.sampling_rate %v: in sampled cohorts the present devices decide the groups; "+
			"leave it out", sh.Groups, co.SamplingRate)
	case sh.Anonymous:
		return refuse("shard.groups is %d and shard.anonymous true: devices draw their groups with the keys that a log of them holds; "+
			"leave one of the two out", sh.Groups)
	case co.Floor < sh.Groups*sh.Floor:
		return refuse("shard.groups is %d, but a cohort of cohort.floor = %d makes groups of %d, below shard.floor = %d", sh.Groups, co.Floor, co.Floor/sh.Groups, sh.Floor)
	case j.ExpectedCohort() > float64(sh.Groups*sh.Size):
		return refuse("shard.groups is %d, but %.0f devices make groups of %.0f, above shard.size = %d",
			sh.Groups, j.ExpectedCohort(), j.ExpectedCohort()/float64(sh.Groups), sh.Size)
	case sh.Groups < 2*sh.Trim+1:
		return refuse("shard.groups is %d, shard.trim = %d needs %d shards", sh.Groups, sh.Trim, 2*sh.Trim+1)
	}
	return nil
}

// validateTrim refuses a combination of shards that has too few of them, and one
// whose privacy would hang on how the shards are cut: docs/privacy/proofs.md, section 5.
func (j Job) validateTrim() error {
	sh, co := j.Shard, j.Cohort
	if sh.Trim < 0 || sh.Trim > secagg.MaxShard {
		return refuse("shard.trim is %d, must be in 0..%d", sh.Trim, secagg.MaxShard)
	}
	if sh.Trim == 0 {
		return nil
	}
	if co.SamplingRate < 1 {
		return refuse("shard.trim is %d and cohort.sampling_rate %v: which shards there are would tell a device's coin; "+
			"trimming needs a sampling rate of 1", sh.Trim, co.SamplingRate)
	}
	need := 2*sh.Trim + 1
	if shards := (co.Floor + sh.Size - 1) / sh.Size; shards < need {
		return refuse("shard.trim is %d, which needs %d shards, but a cohort of cohort.floor = %d makes %d of shard.size = %d", sh.Trim, need, co.Floor, shards, sh.Size)
	}
	return nil
}

// validatePrivacy checks the target, and that the cohort can be expected to
// meet its floor in every round.
func (j Job) validatePrivacy() error {
	p, co := j.Privacy, j.Cohort
	if p.None {
		switch {
		case p.NoiseMultiplier != 0 || p.SimulatedPopulation != 0 || p.SimulatedCohort != 0:
			return refuse("privacy.none is set, and noise_multiplier or simulated_population as well: without noise there is none to choose")
		case j.Clipping.Adaptive:
			return refuse("privacy.none is set: clipping.adaptive counts under noise")
		}
	}
	if err := errors.Join(j.validateOwn(), j.validateObserver(), j.validateBanded()); err != nil {
		return err
	}
	if _, err := dp.ParseAccountant(p.Accountant); err != nil || p.Accountant == "" {
		return refuse("privacy.accountant is %q, must be tight or rdp", p.Accountant)
	}
	if p.NoiseMultiplier < 0 || math.IsNaN(p.NoiseMultiplier) || math.IsInf(p.NoiseMultiplier, 0) {
		return refuse("privacy.noise_multiplier is %v, must be positive, or 0 to calibrate it", p.NoiseMultiplier)
	}
	if (p.SimulatedPopulation == 0) != (p.SimulatedCohort == 0) {
		return refuse("privacy.simulated_population is %d and privacy.simulated_cohort %d: give both or neither",
			p.SimulatedPopulation, p.SimulatedCohort)
	}
	if p.SimulatedPopulation != 0 {
		if p.SimulatedCohort < 1 || p.SimulatedCohort > p.SimulatedPopulation {
			return refuse("privacy.simulated_cohort is %d, must be in 1..simulated_population = %d",
				p.SimulatedCohort, p.SimulatedPopulation)
		}
		if float64(p.SimulatedCohort) <= j.ExpectedCohort() {
			return refuse("privacy.simulated_cohort is %d, must be larger than the expected cohort %v: nothing would be simulated",
				p.SimulatedCohort, j.ExpectedCohort())
		}
	}
	if _, err := dp.CheckDelta(j.Delta(), j.Protected()); err != nil {
		return refuse("privacy.delta: %w", err)
	}
	switch {
	case float64(co.Floor) <= j.ExpectedCohort():
	case j.Fixed():
		return refuse("cohort.floor is %d, above cohort.size = %d", co.Floor, co.Size)
	default:
		return refuse("cohort.floor is %d, above the expected cohort %v = sampling_rate %v * population %d",
			co.Floor, j.ExpectedCohort(), co.SamplingRate, co.Population)
	}
	if j.Fixed() || p.None {
		return nil // what is promised, if anything, does not hang on how many coins fall heads
	}
	if chance, limit := dp.CohortFloorFailure(co.Population, co.SamplingRate, co.Floor, j.Rounds), j.Delta()/100; chance > limit {
		return refuse("a cohort drawn from %d devices at rate %v misses cohort.floor = %d in one of %d rounds with probability %.3g, limit delta/100 = %.3g",
			co.Population, co.SamplingRate, co.Floor, j.Rounds, chance, limit)
	}
	return nil
}

// smallestShard is the smallest shard that any cohort of n or more is cut into.
func smallestShard(n, size int) int {
	if n <= size {
		// A cohort of size+1 is cut in two: that may be the smallest.
		return min(n, (size+1)/2)
	}
	k := (n + size - 1) / size
	return min(n/k, (k*size+1)/(k+1))
}

// Simulated reports whether the budget applies to a simulated population.
func (j Job) Simulated() bool { return j.Privacy.SimulatedPopulation > 0 }

// BudgetPopulation is the population N of the guarantee that the budget applies to.
func (j Job) BudgetPopulation() int {
	if j.Simulated() {
		return j.Privacy.SimulatedPopulation
	}
	return j.Cohort.Population
}

// BudgetRate is the sampling rate of the guarantee that the budget applies to.
func (j Job) BudgetRate() float64 {
	if j.Simulated() {
		return float64(j.Privacy.SimulatedCohort) / float64(j.Privacy.SimulatedPopulation)
	}
	return j.Cohort.SamplingRate
}

// NoiseScale is C_small/C_large of a simulated larger cohort, 1 without simulation.
func (j Job) NoiseScale() float64 {
	if j.Simulated() {
		return j.ExpectedCohort() / float64(j.Privacy.SimulatedCohort)
	}
	return 1
}

// Delta is the delta of the job's guarantee.
func (j Job) Delta() float64 {
	if j.Privacy.Delta != 0 {
		return j.Privacy.Delta
	}
	return dp.DefaultDelta(j.Protected())
}

// shardBreachBits is the bound for one shard that gives the round's.
func (j Job) shardBreachBits() int {
	if j.Shard.BreachBits == 0 {
		return 0
	}
	shards := math.Ceil(2 * j.ExpectedCohort() / float64(j.Shard.Size))
	return min(j.Shard.BreachBits+int(math.Ceil(math.Log2(max(shards, 1)))), 128)
}

// contract is the part of a job that devices derive from, too.
func (j Job) contract() contract.Job {
	return contract.Job{Uplink: j.Wire.Uplink, Providers: j.Providers.Max, Groups: j.Privacy.Groups, Masking: j.Masking()}
}

// Masking is the configuration of secagg without what depends on a round's vectors. The key that
// certifies rosters differs from run to run; it is a placeholder until the run sets it.
func (j Job) Masking() secagg.Config {
	c := contract.Masking(j.Shard.Hybrid)
	c.ShardMax, c.ShardMin, c.CorruptPPM = j.Shard.Size, j.Shard.Floor, uint32(math.Round(j.Shard.Corrupt*1e6))
	c.BreachBits, c.SemiHonest, c.Identified = j.shardBreachBits(), j.Shard.SemiHonest, j.Shard.Identified
	if !c.Identified {
		c.Authority = [32]byte{1}
	}
	return c
}

// hexadecimal reports whether s is so many hexadecimal digits in lower case.
func hexadecimal(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

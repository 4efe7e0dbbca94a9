package audit

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// ErrConfig is an audit that cannot be made.
var ErrConfig = errors.New("audit")

// Defaults of a Config.
const (
	DefaultCanaries = 1000
	DefaultLevel    = 0.05
	DefaultLimit    = 10 * time.Minute
)

// Config says what is audited.
type Config struct {
	Job  job.Job
	Base *model.Base
	// Canaries are the members of the population that are in or out by a secret coin.
	// 0 is DefaultCanaries, or all of the population. In a round that trains fewer values
	// than there are canaries, as many as there are values contribute.
	Canaries int
	// Level is the probability with which the lower bound may be above the truth, over
	// all ways of looking together. 0 is DefaultLevel.
	Level float64
	// Trace is how the fleet comes and goes, by round, over and over; empty: all are
	// there and stay.
	Trace []Attendance
	// Limit bounds the time: rounds that were not made by then are left out of the
	// bound and of the ledger. 0 is DefaultLimit.
	Limit time.Duration
	// Rand is where the audit's own coins come from, nil crypto/rand. Seed makes the
	// job's own randomness repeatable, for tests; nil is crypto/rand as in a real job.
	Rand io.Reader
	Seed []byte
	// Progress is called after each round; may be nil.
	Progress func(pass Pass, round, of int)

	plant plant
}

// plant is a flaw that a test puts in; the zero value is none.
type plant struct {
	coins func(dp.Draw) dp.Draw
	noise func(dp.Noise) dp.Noise
	event func(*dp.Event) bool // false: it is not written down
	own   func(dp.Variance) dp.Variance
}

// Pass is one run of the job. There are two because they look for different things, and canaries
// for one would hide the other.
type Pass string

// The passes of an audit.
const (
	// PassUpdates has canaries that all take part, of which those that are out contribute zeros:
	// what is released shows who was in.
	PassUpdates Pass = "updates"
	// PassPresence has a few canaries that come and go: those that are out are absent, and drop out
	// after the cut. What happens to the rounds shows who was in.
	PassPresence Pass = "presence"
)

// Result is the outcome of an audit.
type Result struct {
	Canaries   int     `json:"canaries"`
	Confidence float64 `json:"confidence"`
	// Epsilon is the lower bound: with the probability Confidence the job keeps no smaller epsilon
	// at its delta.
	Epsilon float64 `json:"epsilon_lower"`
	// Most is what the bound would be if every guess were right: with these canaries no flaw can
	// show more.
	Most   float64      `json:"epsilon_most"`
	Best   Guesses      `json:"best"`
	Ledger dp.Guarantee `json:"ledger"`
	Flawed bool         `json:"flawed"` // the lower bound is above the ledger's epsilon, or a check fails
	Checks []Check      `json:"checks"`
	// FalseAlarms bounds the probability that the checks call a sound job flawed.
	FalseAlarms float64      `json:"false_alarms"`
	Passes      []PassResult `json:"passes"`
	Seconds     float64      `json:"seconds"`
}

// PassResult is one run of the job, and every way in which it was scored.
type PassResult struct {
	Pass Pass `json:"pass"`
	// Runs is how often the job was run: more than once where its population is too small for enough canaries.
	// Each run has canaries of its own.
	Runs     int       `json:"runs"`
	Canaries int       `json:"canaries"` // of all runs
	Rounds   int       `json:"rounds"`   // of all runs, charged, released or not
	Of       int       `json:"of"`       // rounds of the job, times runs
	Released int       `json:"released"`
	Guesses  []Guesses `json:"guesses"`
	// Scores and In are of each canary, by the best way of looking: for a plot.
	Scores []float64 `json:"-"`
	In     []bool    `json:"-"`
}

// Run audits a job.
func Run(ctx context.Context, cfg Config) (Result, error) {
	began := time.Now()
	if err := cfg.fill(); err != nil {
		return Result{}, err
	}
	passes := []Pass{PassUpdates}
	if has, err := cfg.hasPresence(); err != nil {
		return Result{}, err
	} else if has {
		passes = append(passes, PassPresence)
	}
	out := Result{Confidence: 1 - cfg.Level, Epsilon: -1}
	var coins [8]byte
	if _, err := io.ReadFull(cfg.Rand, coins[:]); err != nil {
		return out, fmt.Errorf("audit: randomness: %w", err)
	}
	for i, p := range passes {
		until := began.Add(cfg.Limit * time.Duration(i+1) / time.Duration(len(passes)))
		var runs []*run
		var conform *conformity
		for n := range cfg.repeats(p) {
			if n > 0 && time.Now().After(until) {
				break
			}
			if cfg.Seed != nil { // a run's randomness is its own
				cfg.Seed = append(slices.Clone(cfg.Seed[:len(cfg.Seed)-1]), cfg.Seed[len(cfg.Seed)-1]+byte(min(n, 1)))
			}
			r, err := newRun(cfg, p)
			if err != nil {
				return out, err
			}
			if p == PassUpdates && !cfg.Job.Simulated() {
				if conform == nil {
					conform = newConformity(r.cfg.Job, binary.LittleEndian.Uint64(coins[:]))
				}
				conform.newRun()
				r.conform = conform
			}
			if err := r.rounds(ctx, until); err != nil {
				return out, err
			}
			runs = append(runs, r)
		}
		if canaries := len(runs) * len(runs[0].in); canaries < leastGuesses {
			return out, fmt.Errorf("%w: %d canaries in the time of limit, must be at least %d: give it more", ErrConfig, canaries, leastGuesses)
		}
		if conform != nil { // first: a flaw may leave the ledger without an epsilon
			out.conclude(conform.conclude(runs[0]))
		}
		if err := judge(runs, &out, cfg.Level/float64(len(passes))); err != nil {
			return out, err
		}
	}
	if cfg.Job.Simulated() {
		c, r, err := conformed(ctx, cfg, began.Add(cfg.Limit*5/4), binary.LittleEndian.Uint64(coins[:]))
		if err != nil {
			return out, err
		}
		out.conclude(c.conclude(r))
	}
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

func (r *Result) conclude(checks []Check) {
	r.Checks, r.FalseAlarms = checks, alarms(checks)
	r.Flawed = r.Flawed || flawed(checks)
}

// fewRuns is how often a job is run for its checks alone.
const fewRuns = 4

// conformed runs a job for its checks alone, and returns the first of its runs. The noise that a simulated population's
// devices get is too little to be seen on the lattice: such a job is run with the noise that its
// own devices would need.
func conformed(ctx context.Context, cfg Config, until time.Time, seed uint64) (c *conformity, first *run, err error) {
	cfg.Job.Privacy.SimulatedPopulation, cfg.Job.Privacy.SimulatedCohort = 0, 0
	for n := range min(fewRuns, cfg.repeats(PassUpdates)) {
		if cfg.Seed != nil {
			cfg.Seed = slices.Clone(cfg.Seed)
			cfg.Seed[0] += byte(n)
		}
		r, err := newRun(cfg, PassUpdates)
		if err != nil {
			return nil, nil, err
		}
		if c == nil {
			first, c = r, newConformity(r.cfg.Job, seed)
		}
		c.newRun()
		r.conform = c
		if err := r.rounds(ctx, until); err != nil {
			return nil, nil, err
		}
	}
	return c, first, nil
}

// fill checks the configuration and puts its defaults in.
func (c *Config) fill() error {
	if c.Canaries < 0 {
		return fmt.Errorf("%w: canaries is %d, must be at least %d, or 0 to choose", ErrConfig, c.Canaries, leastGuesses)
	}
	if c.Level == 0 {
		c.Level = DefaultLevel
	}
	if !(c.Level > 0 && c.Level < 0.5) {
		return fmt.Errorf("%w: level is %v, must be in (0, 0.5)", ErrConfig, c.Level)
	}
	if c.Limit == 0 {
		c.Limit = DefaultLimit
	}
	if c.Limit < 0 {
		return fmt.Errorf("%w: limit is %v, must be positive", ErrConfig, c.Limit)
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if len(c.Trace) == 0 {
		c.Trace = []Attendance{{Online: 1}}
	}
	if c.Job.Privacy.None {
		return fmt.Errorf("%w: privacy.none is set: a job that promises nothing has nothing to audit", ErrConfig)
	}
	if c.Job.Providers.Max > 0 {
		return fmt.Errorf("%w: providers.max is %d: canaries are devices, jobs that protect providers are not audited yet", ErrConfig, c.Job.Providers.Max)
	}
	if g := c.Job.Privacy.Groups; g > 1 {
		return fmt.Errorf("%w: privacy.groups is %d: canaries are devices with one vector; audit a copy of the job with privacy.groups: 1, whose noise over a device's norm is the same", ErrConfig, g)
	}
	c.Job.Adapter.Start = "" // what the first round begins with is no secret of a device
	return nil
}

// fewCanaries is how many canaries a fleet too small for them has in several runs together.
const fewCanaries = 64

// repeats is how often the job is run: once, or where all of its population are too few canaries, until they
// are enough.
func (c *Config) repeats(p Pass) int {
	n := c.Job.Cohort.Population
	if p != PassUpdates || n >= leastGuesses || n < 1 {
		return 1
	}
	return (max(c.Canaries, fewCanaries) + n - 1) / n
}

// hasPresence: only where coins choose the cohort, and what they can tip is in delta,
// does the guarantee cover whether a device is there at all. Elsewhere "absent" is to be
// there and send zeros (docs/privacy/proofs.md, section 5).
func (c *Config) hasPresence() (bool, error) {
	core, err := core.New(c.Job, c.Base, c.Seed)
	if err != nil {
		return false, err
	}
	j := core.Job()
	q, err := j.Quorum()
	return j.Sampled() && q.Hit == 0 && j.Cohort.Population >= 8*leastGuesses, err
}

// run is one pass over the job.
type run struct {
	cfg      Config
	pass     Pass
	core     *core.Core
	in       []bool
	quorum   job.Quorum
	events   []dp.Event
	conform  *conformity // nil: nothing is checked
	coins    dp.Draw
	released int
	played   int     // rounds, whatever is in the ledger
	clip     float64 // of the next round, the largest rank's
	talkers  int     // canaries whose bits in the clipping count say something

	signal []float64 // log-likelihood ratio of in to out, by what was released
	counts []factor  // what the clip norms say of the clipping counts
	ends   []factor  // what became of the rounds
}

func newRun(cfg Config, pass Pass) (*run, error) {
	core, err := core.New(cfg.Job, cfg.Base, cfg.Seed)
	if err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, pass: pass, core: core}
	r.cfg.Job = core.Job()
	j := r.cfg.Job
	r.clip = j.Privacy.ClipNorm
	if r.quorum, err = j.Quorum(); err != nil {
		return nil, err
	}
	r.coins = dp.PoissonDrawNumbered(j.Cohort.Population)
	if j.Fixed() {
		r.coins = dp.FixedDrawNumbered(j.Cohort.Population, j.Cohort.Size)
	}
	if f := cfg.plant.coins; f != nil {
		r.coins = f(r.coins)
	}
	n := cfg.Canaries
	if cfg.repeats(pass) > 1 {
		n = j.Cohort.Population // of each run
	}
	if n > j.Cohort.Population {
		return nil, fmt.Errorf("%w: %d canaries are more than cohort.population = %d", ErrConfig, n, j.Cohort.Population)
	}
	if n == 0 {
		n = min(j.Cohort.Population, DefaultCanaries)
	}
	rate := j.Cohort.SamplingRate * float64(j.Rounds)
	if pass == PassPresence {
		// What becomes of a round is little, and shared by all canaries that are there.
		n = min(n, j.Cohort.Population/4, max(16, min(64, int(rate/8))))
	}
	if n*cfg.repeats(pass) < leastGuesses {
		return nil, fmt.Errorf("%w: %d canaries, must be at least %d", ErrConfig, n, leastGuesses)
	}
	if r.talkers = max(16, int(rate/2)); j.Cohort.SamplingRate == 1 {
		r.talkers = j.Rounds * 3 / 4 // without coins every count is an equation
	}
	r.talkers = min(n, r.talkers, 128)
	r.in, r.signal = make([]bool, n), make([]float64, n)
	for i := range r.in {
		if r.in[i], err = r.coin(0.5); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// coin falls on true with probability p, to 2^-53.
func (r *run) coin(p float64) (bool, error) {
	n, err := rand.Int(r.cfg.Rand, big.NewInt(1<<53))
	if err != nil {
		return false, fmt.Errorf("audit: randomness: %w", err)
	}
	return float64(n.Int64()) < p*(1<<53), nil
}

// maxWaits is how often in a row too few may be there for a draw.
const maxWaits = 1000

// rounds makes the job's rounds, or as many as there is time for.
func (r *run) rounds(ctx context.Context, until time.Time) error {
	of, waits := r.cfg.Job.Rounds, 0
	for turn := 0; r.played < of; turn++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.played > 0 && time.Now().After(until) {
			return nil
		}
		made, err := r.round(ctx, r.cfg.Trace[turn%len(r.cfg.Trace)])
		switch {
		case err != nil:
			return err
		case made:
			waits = 0
			if r.cfg.Progress != nil {
				r.cfg.Progress(r.pass, r.played, of)
			}
		default:
			if waits++; waits == maxWaits {
				return fmt.Errorf("%w: the trace has not brought the %d devices that a draw needs together in %d turns: raise online, or lower what asks for so many",
					ErrConfig, r.quorum.Ready, maxWaits)
			}
		}
	}
	return nil
}

// there says who is online before a draw, the canaries first.
func (r *run) there(a Attendance) ([]bool, int, error) {
	online, count := make([]bool, r.cfg.Job.Cohort.Population), 0
	for i := range online {
		share := a.Online
		if r.pass == PassPresence && i < len(r.in) {
			share *= 0.5 // who comes and goes can be told apart
		}
		var err error
		if share < 1 {
			if online[i], err = r.coin(share); err != nil {
				return nil, 0, err
			}
		} else {
			online[i] = true
		}
		if online[i] && !r.absent(i) {
			count++
		}
	}
	return online, count, nil
}

// absent reports whether a member is a canary that is out, in the pass in which that
// is not to be there.
func (r *run) absent(member int) bool {
	return r.pass == PassPresence && member < len(r.in) && !r.in[member]
}

// round draws a round, if enough are there, and notes what everybody sees of it.
func (r *run) round(ctx context.Context, a Attendance) (made bool, err error) {
	online, count, err := r.there(a)
	j := r.cfg.Job
	groups, enough := r.quorum.Allows(j, j.Cohort.Population, count)
	if err != nil || !enough {
		return false, err
	}
	d, err := r.core.Draw(r.coins)
	if err != nil {
		return false, err
	}
	if r.conform != nil {
		r.conform.cohorts.add(d.Cohort())
		event := d.Event()
		if f := r.cfg.plant.event; f != nil {
			f(&event)
		}
		r.conform.sawQuorum(j, groups, count, event.Hit)
	}
	cohort := slices.DeleteFunc(slices.Clone(d.Cohort()), r.absent)
	fates, err := r.fates(cohort, online, a.Dropout)
	if err != nil {
		return false, err
	}
	o, err := play(j, groups, cohort, func(member int) round.State { return fates[member] }, r.cfg.Rand)
	if err != nil {
		return false, err
	}
	if r.played++; r.conform != nil && !o.charged {
		r.conform.unwritten++
	}
	o.released = o.released && (o.noiseOnly || r.core.Enough(len(o.members), r.cfg.Job.Cohort.Population))
	if r.pass == PassPresence {
		r.sawFate(o, groups, cohort, online, fates)
	}
	if !o.released {
		event := d.Event()
		event.Kind = dp.KindCharged
		r.events = append(r.events, event)
		return true, nil
	}
	return true, r.release(ctx, d, o, online, a)
}

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

package audit

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
)

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
				return fmt.Errorf("%w: the trace has not brought online the %d devices that a draw needs, in %d turns: raise online, or lower cohort.quorum or cohort.size",
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

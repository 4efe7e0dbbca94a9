package audit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
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

// Config sets the audited job and its canaries.
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
	// Trace is the fleet's attendance by round, repeated; empty: all are there and stay.
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
	// PassUpdates: all canaries take part, and those that are out contribute zeros. The releases show who was in.
	PassUpdates Pass = "updates"
	// PassPresence: a few canaries come and go. Those that are out are absent, and drop out after the cut. The
	// fate of rounds shows who was in.
	PassPresence Pass = "presence"
)

// Result is the outcome of an audit.
type Result struct {
	Canaries   int     `json:"canaries"`
	Confidence float64 `json:"confidence"`
	// Epsilon is the lower bound: with the probability Confidence the job keeps no smaller epsilon
	// at its delta.
	Epsilon float64 `json:"epsilon_lower"`
	// Most is the bound if every guess were right: these canaries can show no more.
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
	// Runs counts the runs of the job: more than one where its population is too small for enough canaries. Each
	// run has canaries of its own.
	Runs     int       `json:"runs"`
	Canaries int       `json:"canaries"` // of all runs
	Rounds   int       `json:"rounds"`   // of all runs, charged, released or not
	Of       int       `json:"of"`       // rounds of the job, times runs
	Released int       `json:"released"`
	Guesses  []Guesses `json:"guesses"`
	// Scores and In are each canary's score and secret coin, by the guess with the largest bound; for a plot.
	Scores []float64 `json:"-"`
	In     []bool    `json:"-"`
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
	if c.Job.Banded() {
		return fmt.Errorf("%w: privacy.mechanism is banded: rounds are audited as if each round's noise were its own; "+
			"audit the job with privacy.mechanism: independent", ErrConfig)
	}
	if c.Job.Providers.Max > 0 {
		return fmt.Errorf("%w: providers.max is %d: canaries are devices; audit a copy of the job without providers, with privacy.noise_multiplier as privacy explain prints it: the noise over one clip norm, the coins of devices and what is charged are the same (the coins inside a device are not looked at)", ErrConfig, c.Job.Providers.Max)
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

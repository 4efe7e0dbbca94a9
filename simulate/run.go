package simulate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/wasm/program"
)

// Config says what is simulated.
type Config struct {
	Job        job.Job // cohort.population is Population.Len()
	Base       *model.Base
	Start      *model.Adapter // what the first round begins with (job.Adapter.Start names it); nil: a fresh adapter
	Population Population
	// Unclipped clips nothing, for a job without privacy (privacy.none): the control of an
	// experiment. Clip norm and uplink are then chosen here.
	Unclipped bool
	// Dropout is the probability, in [0, 1), with which a drawn client's update never
	// arrives: its coin follows from the seed, the round and the client.
	Dropout float64
	// Slow is the share of clients, in [0, 0.5), that are too slow for every round: their updates never
	// arrive either. The seed says which.
	Slow float64
	// Data names what the population holds and how it was divided, exactly enough
	// that two names differ where the examples do; a state is continued under the
	// same name only.
	Data string
	// Seed derives every draw, coin, order and rounding; at least 16 bytes. Two
	// runs with the same seed and settings are equal bit for bit.
	Seed []byte

	Workers int             // clients that train side by side; at least 1
	Trainer edge.Trainer    // nil: compiled programs, one a worker, which Close ends; the caller closes its own
	Compile program.Compile // nil: program.Step; what the trainer takes for a program
	// Engine names what the trainer computes with: an interrupted run goes on with the
	// same only, since the bits of two differ.
	Engine string

	// Collect lets the cohort contribute; nil: Workers goroutines of this process.
	Collect Collect

	// Search is the distribution of the number of runs of the search that this run belongs to; nil:
	// none.
	Search *accounting.Search

	Evaluator metric.Evaluator // on public validation data; nil: nothing is measured
	// Every is the number of rounds between two measurements at Ranks; 0 measures
	// only the end, where every rank is measured once.
	Every int
	Ranks []int // empty: the rank of the round

	// State is the file that a run goes on from after an interruption, written after every round;
	// empty keeps none. An asterisk in its name is replaced by a hash of the settings, so that runs
	// with other settings have other files. One file is refused to all settings but its own.
	State string
	// Progress is called after each round, in order; may be nil.
	Progress func(Round)
	// Doing is called before what may take long besides training, with its description: a step that is
	// compiled, a rank that is scored; may be nil.
	Doing func(what string)
}

// Result is the result of a simulation.
type Result struct {
	Rounds     []Round        `json:"rounds"`
	Adapter    *model.Adapter `json:"-"`
	Validation []RankAccuracy `json:"validation,omitempty"` // every rank, of the last adapter
	BestRank   int            `json:"best_rank,omitempty"`  // by Validation, or where nothing was validated by Fleet
	Fleet      []RankAccuracy `json:"fleet,omitempty"`      // what the clients found, see metric.BestOf

	// Guarantee is the cost of the simulated deployment.
	Guarantee       dp.Guarantee `json:"guarantee"`
	NoiseMultiplier float64      `json:"noise_multiplier"`
	// Search is the cost of the whole of Config.Search; nil without one, or without noise.
	Search *dp.Guarantee `json:"search,omitempty"`
	// Rho is the noise's expected norm over the clip norm at the largest rank:
	// z*sqrt(d)/(q*N) (docs/SIMULATE.md).
	Rho    float64 `json:"rho"`
	Values int     `json:"values"` // trained, at the largest rank

	Seconds float64 `json:"seconds"` // of this process; an interrupted run counts from its last start
}

// Run is a simulation. It belongs to one goroutine.
type Run struct {
	cfg      Config
	core     *core.Core
	job      job.Job
	task     task.Task
	programs map[int][]byte // by rank
	roll     []int          // clients in the order of the coins; nil: their own
	coins    dp.Draw
	resting  [][]int // the last cohorts, of whom nobody may be drawn yet; nil unless noise is banded
	events   []dp.Event
	rounds   []Round
	slow     map[int]bool // clients that are too slow for every round
	duals    *duals       // of clients, where the job has some; else nil
	settings [32]byte     // what its state may be continued under, where it has one
	own      bool         // the trainer is ours to close
	nothing  nothing
}

// ErrConfig is a configuration that cannot work.
var ErrConfig = errors.New("simulate")

// largestRoll is the population up to which coins are flipped in the order of
// the identities that a reproducible fleet over sockets has: more devices than
// one coordinator enrols have no fleet to be equal to.
const largestRoll = 100_000

// New validates the job, which verifies the budget for all its rounds at once,
// and takes up an interrupted run where the state file holds one.
func New(cfg Config) (_ *Run, err error) {
	switch {
	case cfg.Population == nil || cfg.Population.Len() < 1:
		return nil, fmt.Errorf("%w: no population", ErrConfig)
	case cfg.Population.Len() != cfg.Job.Cohort.Population:
		return nil, fmt.Errorf("%w: population of %d clients, cohort.population is %d", ErrConfig, cfg.Population.Len(), cfg.Job.Cohort.Population)
	case cfg.Workers < 1:
		return nil, fmt.Errorf("%w: workers is %d, must be at least 1", ErrConfig, cfg.Workers)
	case len(cfg.Seed) < 16:
		return nil, fmt.Errorf("%w: seed has %d bytes, must have at least 16", ErrConfig, len(cfg.Seed))
	case !(cfg.Dropout >= 0 && cfg.Dropout < 1):
		return nil, fmt.Errorf("%w: dropout is %v, must be in [0, 1)", ErrConfig, cfg.Dropout)
	case !(cfg.Slow >= 0 && cfg.Slow < 0.5):
		return nil, fmt.Errorf("%w: slow is %v, must be in [0, 0.5)", ErrConfig, cfg.Slow)
	case cfg.Every < 0:
		return nil, fmt.Errorf("%w: every is %d, must not be negative", ErrConfig, cfg.Every)
	}
	cfg.Job.Cohort.MaxEnrolled = max(cfg.Job.Cohort.MaxEnrolled, cfg.Population.Len()) // a limit of sockets
	r := &Run{cfg: cfg, programs: map[int][]byte{}}
	if (cfg.Job.Adapter.Start == "") != (cfg.Start == nil) {
		return nil, fmt.Errorf("%w: adapter.start is %q, and the adapter to start from is there: %v", ErrConfig, cfg.Job.Adapter.Start, cfg.Start != nil)
	}
	if cfg.Unclipped {
		if !cfg.Job.Privacy.None {
			return nil, fmt.Errorf("%w: unclipped is set and privacy.none is not: noise is measured by the clip norm", ErrConfig)
		}
		cfg.Job = unclipped(cfg.Job.ForBase(cfg.Base.Config))
		r.cfg = cfg
	}
	if n := cfg.Job.Shard.Trim; n != 0 {
		return nil, fmt.Errorf("%w: shard.trim is %d: a simulation adds up its clients without shards", ErrConfig, n)
	}
	if r.core, err = core.New(cfg.Job, cfg.Base, cfg.Seed); err != nil {
		return nil, err
	}
	if cfg.Start != nil {
		if err := r.core.StartFrom(cfg.Start); err != nil {
			return nil, err
		}
	}
	r.job = r.core.Job()
	if r.task, err = task.New(cfg.Base, r.core.Layout(), r.job.Adapter.Sequence); err != nil {
		return nil, fmt.Errorf("%w: base: %w", ErrConfig, err)
	}
	if most := slices.Max(r.core.Ranks()); len(cfg.Ranks) > 0 && (slices.Min(cfg.Ranks) < 0 || slices.Max(cfg.Ranks) > most) {
		return nil, fmt.Errorf("%w: ranks to measure are %v, the job has up to %d", ErrConfig, cfg.Ranks, most)
	}
	if n := cfg.Population.Len(); cfg.Job.Fixed() { // apart draws them if noise is banded
		r.coins = dp.FixedDrawNumbered(n, cfg.Job.Cohort.Size)
	} else {
		r.coins = dp.PoissonDrawNumbered(n)
	}
	if cfg.Population.Len() <= largestRoll {
		r.roll = roll(cfg.Seed, cfg.Population.Len())
	}
	r.slow = slowClients(cfg)
	if cfg.Compile == nil {
		r.cfg.Compile = program.Step
	}
	if r.job.Training.Dual {
		if r.duals, err = r.newDuals(); err != nil {
			return nil, err
		}
	}
	if err := r.takeUp(); err != nil {
		return nil, err
	}
	if cfg.Collect == nil {
		if cfg.Trainer == nil {
			r.cfg.Trainer, r.own = edge.NewProgramTrainer(cfg.Workers), true
		}
		r.cfg.Collect = InProcess(r.cfg.Trainer, cfg.Workers)
	}
	return r, nil
}

// generous is how far beyond the job's own clip norm the one of a run without clipping
// lies. A lattice of 2^20 symbols a side resolves what stays a thousandth of it to half a
// percent of a value's own size, and rounds without bias.
const generous = 1000

// unclipped gives a job a norm that no update reaches, and the finest uplink there is: the
// same integers, the same sums, and no clipping. release refuses an update beyond it.
func unclipped(j job.Job) job.Job {
	j.Privacy.ClipNorm *= generous
	j.Wire.Uplink = "fixed32"
	return j
}

// roll orders the clients by the identities that a reproducible fleet gives them.
func roll(seed []byte, n int) []int {
	keys := make([][]byte, n)
	order := make([]int, n)
	for i := range n {
		_, identity := edge.Reproducible(seed, i)
		keys[i], order[i] = identity[32:], i // the public half
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(bytes.Compare(keys[a], keys[b]), cmp.Compare(a, b)) })
	return order
}

// slowClients draws who is too slow. It decides what is simulated and protects nobody.
func slowClients(cfg Config) map[int]bool {
	if cfg.Slow == 0 {
		return nil
	}
	n := cfg.Population.Len()
	key := sha256.Sum256(fmt.Appendf(nil, "starling simulate slow\x00%x", cfg.Seed))
	out := map[int]bool{}
	for _, i := range rand.New(rand.NewChaCha8(key)).Perm(n)[:int(cfg.Slow*float64(n)+1e-9)] {
		out[i] = true
	}
	return out
}

// drops reports whether a drawn client's update never arrives: it is slow, or its coin for Dropout says so, 64 bits of a hash against the rate. It
// decides what is simulated and protects nobody.
func (r *Run) drops(round uint64, client int) bool {
	if r.slow[client] {
		return true
	}
	if r.cfg.Dropout == 0 {
		return false
	}
	h := sha256.New()
	fmt.Fprintf(h, "starling simulate dropout\x00%x\x00%d\x00%d", r.cfg.Seed, round, client)
	return float64(binary.BigEndian.Uint64(h.Sum(nil))>>11) < r.cfg.Dropout*(1<<53)
}

// order is the client whose coin is the member's.
func (r *Run) order(member int) int {
	if r.roll == nil {
		return member
	}
	return r.roll[member]
}

// Close ends what New started.
func (r *Run) Close() error {
	if r.own {
		return r.cfg.Trainer.Close()
	}
	return nil
}

// Done is the number of rounds that are made: more than 0 right after New where
// an interrupted run was taken up.
func (r *Run) Done() int { return len(r.rounds) }

// State is the file that the run goes on from, "" without one.
func (r *Run) State() string { return r.cfg.State }

// Job is the job as it is run: with its defaults, and in a run without clipping with a norm and an
// uplink that change nothing.
func (r *Run) Job() job.Job { return r.job }

// Rounds makes the rounds that are left, then measures every rank.
func (r *Run) Rounds(ctx context.Context) (Result, error) {
	began := time.Now()
	for int(r.core.Version()) < r.job.Rounds {
		round, err := r.round(ctx)
		if err != nil {
			return Result{}, err
		}
		r.rounds = append(r.rounds, round)
		if err := r.keep(); err != nil {
			return Result{}, err
		}
		if err := r.came(); err != nil {
			return Result{}, err
		}
		if r.cfg.Progress != nil {
			r.cfg.Progress(round)
		}
	}
	result := Result{
		Rounds: r.rounds, Adapter: r.core.Adapter(), NoiseMultiplier: r.core.NoiseMultiplier(),
		Values: r.core.Layout().Size(slices.Max(r.core.Ranks())),
	}
	result.Rho = r.core.Terms().Rho()
	var err error
	if result.Guarantee, err = r.guarantee(); err != nil {
		return result, err
	}
	if r.cfg.Search != nil && !r.job.Privacy.None {
		whole, err := r.cfg.Search.Guarantee(r.core.Budget(), r.events, r.job.Privacy.SimulatedPopulation > 0)
		if err != nil {
			return result, err
		}
		result.Search = &whole
	}
	if r.cfg.Evaluator != nil {
		if result.Validation, err = r.measure(ctx, r.core.Ranks()); err != nil {
			return result, err
		}
		best := slices.MaxFunc(result.Validation, func(a, b RankAccuracy) int { return cmp.Compare(a.Accuracy, b.Accuracy) })
		result.BestRank = best.Rank
	}
	if r.cfg.Evaluator == nil {
		var said []metric.Fleet
		for _, round := range r.rounds {
			if round.Fleet != nil {
				said = append(said, *round.Fleet)
			}
		}
		result.BestRank, result.Fleet = metric.BestOf(said, r.job.Rounds)
	}
	result.Seconds = time.Since(began).Seconds()
	return result, nil
}

func (r *Run) round(ctx context.Context) (Round, error) {
	d, err := r.draw()
	if err != nil {
		return Round{}, err
	}
	s, err := r.prepare(d)
	if err != nil {
		return Round{}, err
	}
	t, err := r.cfg.Collect(ctx, s.work, len(d.Cohort()), func(at int) (Client, error) { return r.client(d.ID(), d.Cohort()[at]) })
	if err != nil {
		return Round{}, err
	}
	round, err := r.release(ctx, s, t)
	for _, member := range d.Cohort() {
		if r.drops(d.ID(), r.order(member)) {
			round.Dropped++
		}
	}
	round.Empty -= round.Dropped
	if err != nil {
		return round, err
	}
	if r.cfg.Evaluator != nil && r.cfg.Every > 0 && round.Number%r.cfg.Every == 0 && round.Number < r.job.Rounds {
		ranks := r.cfg.Ranks
		if len(ranks) == 0 {
			ranks = []int{round.Rank}
		}
		if round.Accuracy, err = r.measure(ctx, ranks); err != nil {
			return round, err
		}
		spent, err := r.guarantee()
		if err != nil {
			return round, err
		}
		round.Epsilon = spent.Epsilon
	}
	return round, nil
}

func (r *Run) doing(format string, args ...any) {
	if r.cfg.Doing != nil {
		r.cfg.Doing(fmt.Sprintf(format, args...))
	}
}

func (r *Run) measure(ctx context.Context, ranks []int) ([]RankAccuracy, error) {
	out := make([]RankAccuracy, len(ranks))
	for i, rank := range ranks { // one at a time, so that each is told of
		r.doing("scoring rank %d on validation, %d of %d", rank, i+1, len(ranks))
		figures, err := r.cfg.Evaluator.Evaluate(ctx, r.core.Adapter(), ranks[i:i+1])
		if err != nil {
			return nil, err
		}
		out[i] = RankAccuracy{Rank: rank, Accuracy: figures[0].Accuracy}
	}
	return out, nil
}

// guarantee accounts the noise that the deployment would really draw.
func (r *Run) guarantee() (dp.Guarantee, error) {
	if r.job.Privacy.None {
		return dp.Guarantee{}, nil
	}
	b := r.core.Budget()
	if r.job.Privacy.SimulatedPopulation > 0 {
		return b.Guarantee(accounting.SimulatedEpsilon, r.events)
	}
	if b.Observer == dp.Participants { // whom banded noise, and cohorts without coins, are made for
		return b.Guarantee(accounting.VisibleEpsilon, r.events)
	}
	return b.Guarantee(accounting.Epsilon, r.events)
}

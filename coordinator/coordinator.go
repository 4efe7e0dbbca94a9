package coordinator

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/internal/timing"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Errors with which Run ends before the job is done.
var (
	// ErrBudget: the next round would pass the privacy budget.
	ErrBudget = accounting.ErrBudget
	// ErrAbandoned: too many rounds in a row released nothing.
	ErrAbandoned = errors.New("coordinator: too many rounds in a row were abandoned")
)

// Coordinator runs one job.
type Coordinator struct {
	cfg   Config
	core  *core.Core // owned by the engine but for its constants
	t     *core.Terms
	rnd   core.Randomness
	log   *slog.Logger
	store *store.Store
	keys  keyLog // owned by the engine
	announced
	downloads
	sessions
	background
	shown
	engine
}

// announced is what devices are told of the job, and what they show to enrol; it does not
// change once devices come.
type announced struct {
	jobBytes  []byte
	task      [32]byte // TaskID of jobBytes
	taskName  string   // in hexadecimal, as secagg binds it
	frames    frames
	authority ed25519.PrivateKey
	secret    []byte // of enrolment
}

// downloads are what devices fetch.
type downloads struct {
	blobs    *blobs
	programs *programs // owned by the engine
}

// sessions is what connections and the engine share.
type sessions struct {
	slots    link.Slots     // of connections
	attempts *link.Attempts // to enrol
	events   chan event
	done     chan struct{} // closed when the engine takes no more events
	refusals refusals
	lastWord wire.Message  // what late devices are told; written before done is closed
	woken    chan struct{} // Wake was called
	life     context.Context
	end      context.CancelCauseFunc
}

// background is the work beside the engine, which waits for it.
type background struct {
	workers     workers
	beside      sync.WaitGroup // messages being judged
	maxPending  uint64         // bytes of updates that have come in part
	settleFrom  int            // devices in a round from which messages are checked in batches
	evaluations sync.WaitGroup
	evalCtx     context.Context // Run's, until it returns; set before the first evaluation
}

// shown is what others see of all this.
type shown struct {
	monitor *monitor.Monitor
	metrics *monitor.Metrics // its
	traffic *monitor.Meter   // its
	health  health

	forecasting forecasting
}

// engine is what the engine's goroutine owns: New until Run, then Run's.
type engine struct {
	spending
	report

	fleet     *fleet.Fleet
	mustered  time.Time // when the store was asked last who may be drawn
	dropouts  dropouts
	apart     apart
	paused    bool   // for moving by noise alone, once
	pausedBy  string // an operator, and why; "" while rounds are drawn
	beginning beginning
	trace     fleet.Trace

	running *running      // nil between rounds
	held    contract.Held // by devices, of the last rounds' slices
	inARow  int           // rounds abandoned in a row
	broken  error         // ends Run

	started time.Time
	alarm   timing.Alarm
	pace    time.Duration // smoothed duration of a round
	paces   timing.Pace   // of its turns
	// returnedBy is until when a round waits for devices that have not come since; zero
	// while too few have to say.
	returnedBy time.Time

	measuring measuring
	exporting exporting
}

// spending is the ledger as the engine knows it.
type spending struct {
	spent    []dp.Event
	accounts *accounts
	head     [32]byte // of the ledger
}

// report is what is published next.
type report struct {
	status    monitor.Status
	total     monitor.Result
	deviceRds int // devices that answered turn 1, over all rounds
	published time.Time
}

// New validates the job, opens or creates the store, verifies the ledger and resumes from the last
// committed round. If the job cannot be run, New returns the error and has changed nothing.
func New(cfg Config) (*Coordinator, error) {
	if cfg.Dir == "" {
		return nil, fmt.Errorf("coordinator: Config.Dir is empty: name a folder for the state")
	}
	if err := cfg.Job.Served(); err != nil {
		return nil, err
	}
	core, err := core.New(cfg.Job, cfg.Base, cfg.Seed)
	if err != nil {
		return nil, err
	}
	if cfg.Start != nil {
		if err := core.StartFrom(cfg.Start); err != nil {
			return nil, err
		}
	}
	t := core.Terms()
	c := &Coordinator{
		core: core, t: t, rnd: core.Randomness(), cfg: cfg,
		downloads:  downloads{blobs: newBlobs()},
		sessions:   sessions{events: make(chan event, 16), done: make(chan struct{}), woken: make(chan struct{}, 1)},
		background: background{workers: newWorkers(), maxPending: maxPending, settleFrom: settleFrom},
		shown:      shown{health: health{began: time.Now()}},
		engine:     engine{fleet: fleet.New(), paces: timing.Pace{Unawaited: t.Job.Deadlines.Unawaited}},
	}
	var to slog.Handler
	if cfg.Log != nil {
		to = cfg.Log.Handler()
	}
	c.monitor = monitor.New(to)
	c.log, c.metrics, c.traffic = c.monitor.Log(), c.monitor.Metrics(), c.monitor.Meter()
	c.secret = []byte(t.Job.Enrolment.Secret)
	if cfg.Host != nil {
		c.secret = cfg.Host.Secret()
	}
	c.attempts = link.NewAttempts(cfg.EnrolmentsOfAddress)
	c.life, c.end = context.WithCancelCause(context.Background())
	most := t.Job.Cohort.MaxEnrolled
	if c.private() {
		if most = t.MostEnrolled(); most < t.Job.Cohort.MaxEnrolled {
			c.log.Warn("enrolment ends where delta would be above 1/N", "delta", t.Budget.Delta,
				"most", most, "cohort.max_enrolled", t.Job.Cohort.MaxEnrolled)
		}
	}
	sum, err := digest(t, c.private())
	if err != nil {
		return nil, err
	}
	constant, err := kept(t, c.private())
	if err != nil {
		return nil, err
	}
	c.slots.Limit = c.MaxConnections()
	opt := store.Options{Task: t.Job.Name, Job: sum, Terms: constant, NotPrivate: !c.private(), MaxIdentities: most, Delta: t.Budget.Delta}
	if cfg.Host != nil {
		opt.Hosted, opt.Fence = true, cfg.Host.Fence()
	}
	if c.store, err = store.Open(cfg.Dir, opt); err != nil {
		return nil, err
	}
	if err := c.resume(); err != nil {
		return nil, errors.Join(err, c.store.Close())
	}
	return c, nil
}

// resume takes from the store what earlier runs left, and makes what is made once.
func (c *Coordinator) resume() error {
	for _, line := range c.store.Recovered() {
		c.log.Warn("recovered", "what", line)
	}
	once := func(name string, n int) ([]byte, error) {
		return c.store.Secret(name, func() ([]byte, error) { return c.rnd.Read(name, 0, n) })
	}
	instance, err := once("instance", 16)
	if err != nil {
		return err
	}
	authority, err := once("authority", ed25519.SeedSize)
	if err != nil {
		return err
	}
	seed, err := once("adapter", 8)
	if err != nil {
		return err
	}
	c.authority = ed25519.NewKeyFromSeed(authority)
	certifiedBy(c.t, c.authority.Public().(ed25519.PublicKey))
	logSeed, err := once("log", ed25519.SeedSize)
	if err != nil {
		return err
	}
	if err := c.openLog(logSeed); err != nil {
		return err
	}
	if c.frames, err = longest(c.t); err != nil {
		return err
	}
	if err := c.core.Begin(binary.LittleEndian.Uint64(seed)); err != nil {
		return err
	}
	job, err := announce(c.t, [16]byte(instance), c.private())
	if err != nil {
		return err
	}
	job.Published.Name, job.Published.Revision = c.cfg.BaseName, c.cfg.BaseRevision
	if c.jobBytes, err = job.AppendBinary(nil); err != nil {
		return core.RefuseJob("%w", err)
	}
	c.task = wire.TaskID(c.jobBytes)
	c.taskName = hex.EncodeToString(c.task[:])
	if c.cfg.Sources != "" {
		if err := c.store.KeepSources(c.cfg.Sources); err != nil {
			return err
		}
	}
	c.blobs.hold(monitor.PartBase, c.t.BaseRef, c.t.BaseBlob)
	c.programs = newPrograms(c.cfg, c.t, c.blobs)
	if c.t.Job.Training.Memory > 0 { // one that does not fit is told now, before a round is paid for
		if _, err := c.programs.at(slices.Max(c.t.Job.Ranks())); err != nil {
			return err
		}
	}

	ledger, err := c.store.Ledger()
	if err != nil {
		return err
	}
	c.spent, c.head = ledger.Events(), ledger.Head
	last, err := c.store.Last()
	if err != nil {
		return err
	}
	next, err := c.store.NextRound()
	if err != nil {
		return err
	}
	if last == nil {
		err = c.core.ContinueAt(next)
	} else if noise, failed := c.resumeKept(last.Version); failed != nil {
		err = failed
	} else {
		err = c.core.Restore(core.Snapshot{Version: last.Version, NextRound: next, ClipNorm: last.ClipNorm,
			Adapter: last.Adapter, Optimizer: last.Optimizer, Noise: noise})
	}
	if err != nil {
		return err
	}
	known, err := c.store.Enrolled()
	if err != nil {
		return err
	}
	for _, id := range known {
		c.addDevice(id)
	}
	strikes, err := c.store.Strikes() // of a fleet that is shared its host counts them
	if err != nil {
		return err
	}
	for id, n := range strikes {
		if d := c.fleet.Of(id); d != nil {
			d.Strikes = n
		}
	}
	if err := errors.Join(c.resumeTrace(), c.resumeDropouts(), c.musterFleet()); err != nil {
		return err
	}
	if err := c.recall(); err != nil {
		return err
	}
	if facts, err := maskingFacts(c.t.Job); err == nil {
		c.log.Info("masking", facts...)
	}
	if warning, err := dp.CheckDelta(c.t.Budget.Delta, c.t.Job.Protected()); err == nil && warning != "" {
		c.log.Warn("delta", "warning", warning)
	}
	c.status.PublicStatus = monitor.PublicStatus{
		Job: c.t.Job.Name, Labels: append([]string{}, c.t.Job.Labels...), Rounds: c.t.Job.Rounds, Private: c.private(),
		State: monitor.StateWaiting, RoundID: c.status.RoundID, Measured: c.status.Measured,
	}
	c.status.Version = int(c.core.Version())
	c.metrics.Version.Set(float64(c.core.Version()))
	if c.status.Version >= c.t.Job.Rounds { // nobody is waited for
		if c.status.State = monitor.StateMeasuring; c.cfg.Evaluator == nil {
			c.status.State = monitor.StateFinished
		}
	}
	if err := c.guarantees(); err != nil {
		return err
	}
	c.total.Private = c.private()
	c.publish()
	return c.catchUp()
}

// private reports whether the job promises anything: its noise is drawn, and secret.
func (c *Coordinator) private() bool { return c.rnd.Secret() && !c.t.Job.Privacy.None }

// guarantees puts the ledger's guarantees into the progress.
func (c *Coordinator) guarantees() error {
	var err error
	if c.accounts, err = newAccounts(c.t, c.spent); err != nil || !c.private() {
		return err
	}
	c.status.Guarantees, err = c.accounts.of(c.spent)
	return err
}

func (c *Coordinator) addDevice(id [32]byte) *fleet.Device {
	d := c.fleet.Add(id)
	c.metrics.Enrolled.Set(float64(c.fleet.Enrolled()))
	return d
}

// MaxConnections is the number of connections that the job's devices may hold: one for a session
// each, and now and then a second one for blobs.
func (c *Coordinator) MaxConnections() int { return 2*c.t.Job.Cohort.MaxConnected + 256 }

// sessionToken makes a token that a device shows when it reconnects.
func sessionToken() []byte {
	b := make([]byte, 32)
	rand.Read(b) // ends the program where the system has no randomness
	return b
}

// Close ends all connections and closes the store. Call it after Run has returned, or instead of
// it.
func (c *Coordinator) Close() error {
	gone, again := c.slots.Close()
	if again {
		return nil
	}
	c.end(link.ErrClosing)
	<-gone
	return c.store.Close()
}

// Wait blocks until every device session has ended by itself, or ctx is done: after Run it gives
// devices the time to read their last message.
func (c *Coordinator) Wait(ctx context.Context) {
	select {
	case <-c.slots.Idle():
	case <-ctx.Done():
	}
}

// Job is the job with every default filled in.
func (c *Coordinator) Job() Job { return c.t.Job }

// Token is the argument of `starling join` for a coordinator that devices reach at baseURL
// (http://host:port or https://host:port) with the given certificate pin.
func (c *Coordinator) Token(baseURL string, pin []byte) string {
	t := wire.Token{URL: baseURL, Pin: pin, Secret: c.secret, Task: c.task[:]}
	if m := c.t.Contract.Job.Masking; !m.Identified {
		t.Authority = m.Authority[:]
	}
	return t.String()
}

// checkpointDir is where the released checkpoint is exported.
func (c *Coordinator) checkpointDir() string { return filepath.Join(c.cfg.Dir, "checkpoint") }

// Ledger returns the privacy ledger, verified.
func (c *Coordinator) Ledger() (store.Ledger, error) { return c.store.Ledger() }

// Fleet opens the operators' view of the devices, through which they invite and ban; the caller
// closes it. Changes take effect before the next round.
func (c *Coordinator) Fleet() (*store.Fleet, error) { return store.OpenFleet(c.cfg.Dir) }

// Closing is closed when Close begins to end sessions, so that streams to operators end with them.
func (c *Coordinator) Closing() <-chan struct{} { return c.life.Done() }

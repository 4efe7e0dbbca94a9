package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/internal/timing"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// running is the round under way; owned by the engine.
type running struct {
	*core.Draw
	m         *round.Machine
	plan      []byte // canonical bytes: what P hashes
	patches   []wire.Patch
	keying    *secagg.Keying
	shards    []*secagg.Server
	traced    bool     // their sums were looked at for alarms
	survivors [][]byte // by shard: the frame that announces U3
	payload   []byte   // of the turn that was framed last, which its frame copies
	packed    uint64   // bytes of an update's packed symbols

	noise *dp.Pool // nil where devices add theirs

	parts     map[round.Device]*participant
	away      timing.Waits[*fleet.Device] // whose connection broke, and who are still waited for
	pending   uint64                      // bytes that updates which have come in part may take
	uploads   []*fleet.Device             // whose they are, the oldest first
	due       timing.Deadlines            // of its shards, or of its cohort before there are any
	reached   round.State                 // what the journal says last, since entered
	entered   time.Time
	unsaved   map[int][]byte // survivor sets, by shard, that are not on the disk yet
	unjudged  batch
	admitted  []addend       // vectors that no goroutine was given yet
	adding    sync.WaitGroup // admitted vectors on their way into their sums
	unmasking sync.WaitGroup
	life      context.Context // until the round is over, and over ends it
	over      context.CancelFunc
	began     time.Time
	ready     int // devices that were there when the coins fell
	groups    int // into which they are dealt, where they are
	limits    [round.Unmasking + 1]time.Duration
	answers   [round.Unmasking + 1]timing.Answers
	silent    []*fleet.Device     // connected, and without a word in a state of it
	declined  map[[32]byte]uint16 // whom a limit of its owner's keeps out, with the code that it gave
	finish    *round.Finish
	fatal     error
}

// participant is what the engine knows of a drawn device in the round.
type participant struct {
	device     *fleet.Device
	last       []byte         // our last message to it, to repeat on a reconnect
	dropped    bool           // told that the round goes on without it
	assembly   *wire.Assembly // of its update, until it is judged
	room       uint64         // bytes that the update may take
	judging    bool           // a message of it is being judged
	there      bool           // it was ready when the coins fell
	noRoom     bool           // no shard had room for it
	why        departure      // it left, as far as it is known
	updateSize uint64
}

// departure is why a device left a round that it was in.
type departure int

const (
	departedSilent   departure = iota // a lost connection, no word in time, a shard that failed
	departedDeclined                  // a limit of its owner's
	departedStopped                   // by its own word
	departedRefused                   // what it sent was refused
)

// departures counts them, of devices that were in the round.
func (r *running) departures() (d monitor.Departures) {
	for n, p := range r.parts {
		if !r.m.Joined(n) {
			continue
		}
		switch p.why {
		case departedDeclined:
			d.Declined++
		case departedStopped:
			d.Stopped++
		case departedRefused:
			d.Refused++
		}
	}
	return d
}

// forget drops what has come of a device's update.
func (r *running) forget(p *participant) {
	if p.assembly != nil {
		r.pending -= p.room
		p.assembly, p.room = nil, 0
		// Updates are judged about in the order in which they came.
		if i := slices.Index(r.uploads, p.device); i >= 0 {
			r.uploads = slices.Delete(r.uploads, i, i+1)
		}
	}
}

// draw makes a round: rank, rotation and cohort, each from its own randomness,
// and asks the budget before anything is written or said.
func (c *Coordinator) draw() (*running, error) {
	id := c.core.NextRound()
	fail := func(err error) (*running, error) {
		return nil, &fatalError{fmt.Errorf("coordinator: drawing round %d: %w", id, err)}
	}
	began := time.Now()
	r := &running{parts: map[round.Device]*participant{}, began: began, entered: began}
	r.ready = c.available(r.began)
	var enough bool
	if r.groups, enough = c.t.Quorum.Allows(c.t.Job, c.fleet.Active(), r.ready); !enough && c.t.Job.Sampled() {
		return fail(fmt.Errorf("%d of %d active devices are there, too few to flip coins", r.ready, c.fleet.Active()))
	}
	roll, err := c.roll(r.began)
	if err != nil {
		return fail(err)
	}
	coins := dp.PoissonDraw(roll.Population)
	if size := c.t.Job.Cohort.Size; c.t.Job.Fixed() {
		if coins = dp.FixedDraw(roll.Population, size); c.t.Job.Banded() {
			coins = dp.SeparatedDraw(roll.Population, size)
		}
		if r.ready < size {
			return fail(fmt.Errorf("%d devices are there, fewer than cohort.size = %d", r.ready, size))
		}
	}
	if r.Draw, err = c.core.Draw(coins); err != nil {
		return fail(err)
	}
	var cohort []round.Device
	for _, i := range r.Cohort() {
		d := c.fleet.At(roll.Who(i))
		cohort = append(cohort, d.N)
		r.parts[d.N] = &participant{device: d, there: d.There(r.began)}
	}
	if err := c.askBudget(r); err != nil {
		return nil, err
	}
	r.limits = c.limits(r.Size())
	if r.m, err = round.New(c.roundConfig(r, cohort)); err != nil {
		return fail(err)
	}
	begun := store.Round{Version: c.core.Version(), Rank: r.Rank(), Certificate: r.Certificate()}
	if cost := r.Event(); c.t.Sampled() {
		begun.Cost = &cost
	}
	if err := c.beginShared(r); err != nil {
		return nil, err
	}
	given, err := c.store.BeginRound(begun)
	if err != nil {
		return nil, &fatalError{err}
	}
	if given != id {
		return fail(fmt.Errorf("the store gave number %d", given))
	}
	return r, nil
}

// askBudget refuses a round that would pass the budget.
func (c *Coordinator) askBudget(r *running) error {
	if !c.private() {
		return nil // nothing is promised
	}
	if err := c.t.CheckDelta(c.fleet.Enrolled()); err != nil {
		return &fatalError{err}
	}
	return stopped(r.ID(), c.accounts.allow(c.spent, r.Event()))
}

// askAnother refuses to wait for a round that would pass the budget whatever it draws.
func (c *Coordinator) askAnother() error {
	if !c.private() {
		return nil
	}
	return stopped(c.core.NextRound(), c.accounts.mayStartAnother(c.spent, c.core.NextRound()))
}

// stopped is how accounts' word on a round is said.
func stopped(round uint64, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBudget):
		return fmt.Errorf("coordinator: stopped before round %d: %w", round, err)
	}
	return &fatalError{err}
}

// noted is what stands beside a round's ledger entry: what all rounds with it
// come to.
func (c *Coordinator) noted(r *running, reason string) (store.Note, error) {
	note := store.Note{Reason: reason}
	if !c.private() {
		return note, nil
	}
	var err error
	event := r.Event()
	if reason != "" {
		event.Kind = dp.KindCharged
	}
	note.Guarantees, err = c.accounts.of(append(slices.Clip(c.spent), event))
	return note, err
}

func (c *Coordinator) roundConfig(r *running, cohort []round.Device) round.Config {
	j := c.t.Job
	cfg := round.Config{Cohort: cohort, Floor: j.Cohort.Floor, Drawn: c.t.Sampled(),
		Enough: j.Deadlines.Enough, Grace: j.Deadlines.Grace}
	if cfg.Drawn {
		cfg.Enough = 1
	}
	for s, timeout := range r.limits {
		cfg.Limits[s] = round.Limit{Timeout: timeout, Quorum: j.Shard.Floor}
	}
	return cfg
}

// prepare makes what devices are assigned: the slice, the programs, the plan.
func (c *Coordinator) prepare(ctx context.Context, r *running) error {
	training := c.t.Job.Training.At(int(c.core.Version()), c.t.Job.Rounds)
	plan := &wire.Plan{
		Task: c.task, Round: r.ID(), Version: c.core.Version(), Rank: uint16(r.Rank()), Values: uint32(r.Vector().Lattice.Dim()),
		Rotation: r.Rotation(), ClipNorm: r.Norm(),
		CountCoordinates: uint32(r.Vector().Count.Coordinates), CountSymbol: uint32(r.Vector().Count.Symbol),
		FigureCoordinates: uint32(r.Vector().Figures.Coordinates), FigureSymbol: uint32(r.Vector().Figures.Symbol),
		OwnNoise: c.t.Own.Multiplier, Honest: c.t.Own.Honest,
		Steps: uint32(training.Steps), Rate: training.LearningRate,
	}
	if err := c.publishLog(); err != nil {
		return err
	}
	c.cosignLog(ctx)
	plan.Head = c.keys.note
	if c.t.Contract.Job.Masking.Dealt {
		plan.Groups = uint32(r.groups)
	}
	var err error
	if plan.Programs, err = c.programs.at(r.Rank()); err != nil {
		return err
	}
	if err := c.downlink(r, plan); err != nil {
		return err
	}
	if r.plan, err = plan.AppendBinary(nil); err != nil {
		return err
	}
	signer := c.authority
	if c.t.Job.Shard.Identified {
		signer = nil
	}
	masking := c.t.Contract.Masking(r.Vector())
	p := secagg.PlanHash(c.taskName, r.ID(), masking, r.plan)
	if r.keying, err = secagg.NewKeying(masking, p, signer); err != nil {
		return err
	}
	c.lots(r)
	// The bytes of an update that are not its symbols: a generous bound on
	// secagg's framing of it.
	r.packed = (uint64(masking.Dim)*uint64(masking.Width) + 7) / 8
	if r.Spec().Unnoised || c.t.Own.Multiplier > 0 {
		return nil
	}
	// Noise is drawn while devices train, so that the release does not wait.
	r.noise, err = dp.NewPool(ctx, r.Variance(), r.Vector().Size(), c.core.Noise(r.Draw))
	return err
}

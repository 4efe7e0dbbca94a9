package edge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// job is what a device knows of the job it joined. The announced constants do
// not change; the rest is filled once by prepare, but for held, which is the
// client's goroutine's.
type job struct {
	wire.Job
	task  [32]byte
	terms contract.Terms // what masking follows from

	base   *model.Base // nil if it lies in the cache on disk
	layout *model.Layout
	form   task.Task
	read   reading // the data, in the task's form

	held  contract.Held // what was received last, to take differences against
	start string        // what the round under way begins with, as the account keeps it; the client's goroutine's
	row   uint64        // the release, counted from 1, that the round under way is to be; likewise
	round uint64        // that round's number, once Account.begin let it begin; likewise
}

// against finds the patch that this device holds the base of, and the base cut
// to the rank; nil if there is none.
func (j *job) against(patches []wire.Patch, rank int) (*wire.Blob, []float32, error) {
	if len(patches) == 0 {
		return nil, nil, nil
	}
	for values, err := range j.held.At(j.layout, rank) {
		if err != nil {
			return nil, nil, err
		}
		digest := quant.Digest(values)
		for i := range patches {
			if patches[i].From == digest {
				return &patches[i].Blob, values, nil
			}
		}
	}
	return nil, nil, nil
}

// parseJob reads an announced job and refuses one that this device cannot or
// will not be part of.
func (c *client) parseJob(b []byte) (*job, error) {
	announced, err := wire.ParseJob(b)
	if err != nil {
		return nil, &ProtocolError{err}
	}
	j := &job{Job: *announced, task: wire.TaskID(b), read: reading{done: make(chan struct{})}}
	if err := c.checkJob(j); err != nil {
		return nil, err
	}
	if j.HeldOut > 0 && !scoresOffered {
		return nil, fmt.Errorf("%w: it scores held-out examples, which this build of the page cannot: load edge-full.wasm", ErrJob)
	}
	if c.own != nil && c.own[announced.Base.SHA256] == nil {
		return nil, fmt.Errorf("%w: the job's is %x, which the one given here is in no form", ErrBase, announced.Base.SHA256)
	}
	if key := c.token.Authority; len(key) != 0 && !j.Identified && j.RosterKey != [32]byte(key) {
		return nil, fmt.Errorf("%w: its rosters are certified by another key than the join token names", ErrJob)
	}
	if j.terms, err = contract.Announced(announced).Terms(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJob, err)
	}
	if uint64(j.Base.Size) > c.cfg.MaxBlob {
		return nil, fmt.Errorf("%w: base has %d bytes, limit %d", ErrJob, j.Base.Size, c.cfg.MaxBlob)
	}
	if c.cfg.Announced != nil {
		if err := c.cfg.Announced(j.task, b); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrJob, err)
		}
	}
	return j, nil
}

// checkJob checks an announced job against what the owner allows.
func (c *client) checkJob(j *job) error {
	if !j.Privacy.Private && !c.cfg.AcceptNotPrivate {
		return ErrNotPrivate
	}
	return errors.Join(c.cfg.Policy.checkJob(&j.Job, c.cfg.Account.shownElsewhere(j.task)), c.checkBase(j), c.cfg.Found.check(&j.Job, c.cfg.AcceptNotPrivate))
}

// claim is what the job says of itself, for the device's owner.
func (j *job) claim() string {
	p := j.Privacy
	if !p.Private {
		if p.NoiseMultiplier == 0 {
			return j.Name + " (not private: no noise is added to the sum of updates)"
		}
		return j.Name + " (not private: a reproducible demonstration)"
	}
	unit, whose := "this device", "devices"
	if j.Providers > 0 {
		unit, whose = "each provider in this device's data", "devices with their providers"
	}
	if p.Simulated {
		return fmt.Sprintf("%s (simulates the noise of %d %s: it does not protect %s)", j.Name, p.Population, whose, unit)
	}
	how := "zero-out adjacency"
	if p.Accountant != "" {
		how = p.Accountant + " accountant, " + how
	}
	switch p.Observer {
	case wire.ObserverCoalition:
		how += fmt.Sprintf(", also against %.4g %% of the devices that tell whom they saw in their shards", float64(j.CorruptPPM)/1e4)
	case wire.ObserverParticipants:
		how += ", also against those who see who takes part"
	default:
		how += ", from those who do not see who takes part"
	}
	if p.Separation > 0 {
		how += fmt.Sprintf(", with this device in one of %d releases at most", p.Separation)
	}
	switch p.Noise {
	case wire.NoiseDevices:
		how += fmt.Sprintf(", by the noise that %d honest devices add, this one %.4g of its clip norm", p.Honest, p.OwnNoise)
	case wire.NoiseSilo:
		how += fmt.Sprintf(", by the noise that this device adds, %.4g of its clip norm", p.OwnNoise)
	}
	return fmt.Sprintf("%s (says it protects %s: epsilon up to %.4g at delta %.3g, %s)", j.Name, unit, p.Budget, p.Delta, how)
}

// unlogged is what the job's owner should know of one without a log.
func (j *job) unlogged() string {
	if j.LogKey != [32]byte{} {
		return ""
	}
	return "; it keeps no log of its devices: those that its coordinator invents look like any other"
}

// prepare fetches the base and tokenizes the local data: once a job, in a
// goroutine of its own.
func (c *client) prepare(ctx context.Context, j *job) error {
	c.events.send(Event{State: Preparing, Text: j.claim() + c.cfg.Policy.mostShown(&j.Job, c.cfg.Account.shownElsewhere(j.task)) + j.unlogged()})
	if j.base = c.own[j.Base.SHA256]; j.base == nil && c.cfg.Fetch != nil {
		var err error
		if j.base, err = c.fetchBase(ctx, j); err != nil {
			return err
		}
	}
	if j.base != nil {
		return c.prepareOver(ctx, j, j.base)
	}
	blob, err := c.blobs.open(ctx, j.Base, func(done, total int64) {
		c.events.send(Event{State: Fetching, Done: done, Total: total, Text: "base"})
	})
	if permanent := new(statusError); errors.Is(err, errWrongBytes) || errors.As(err, &permanent) {
		return fmt.Errorf("%w: %w", ErrBase, err)
	} else if err != nil {
		return err
	}
	base, err := openBlob(j.Base, blob)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBase, err)
	}
	if c.blobs.onDisk(j.Base) {
		defer debug.FreeOSMemory() // it is read again where it is needed
	} else {
		j.base = base
	}
	return c.prepareOver(ctx, j, base)
}

// prepareOver is the preparation once the base is there.
func (c *client) prepareOver(ctx context.Context, j *job, base *model.Base) (err error) {
	if err := j.checkTokenizer(base); err != nil {
		return err
	}
	if j.layout, err = layoutOf(&j.Job, base); err != nil {
		return err
	}
	most := int(j.RankMax)
	if j.HeadOnly {
		most = 0
	}
	if err := errors.Join(c.cfg.Policy.checkValues(j.layout.Size(most)), c.cfg.Policy.checkTensors(j.layout, most)); err != nil {
		return err
	}
	t, err := task.New(base, j.layout, int(j.Sequence))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBase, err)
	}
	// Before the data is looked at: a refusal must not depend on how much there is.
	if err := c.cfg.Policy.checkBatch(t.Columns(), int(j.Batch)); err != nil {
		return err
	}
	if err := c.checkLeak(ctx, j, base); err != nil {
		return err
	}
	j.form = t
	if c.silent() {
		return c.readSilently(ctx, j)
	}
	j.read.data, err = c.readData(j, nil)
	return err
}

// readData reads the local data and encodes it; pause, where it is not nil, is called between
// two examples.
func (c *client) readData(j *job, pause func() error) (*Data, error) {
	set, err := c.examples(j.Labels, int(j.Providers))
	if err != nil {
		return nil, err
	}
	d, err := newData(set, j.form, division{int(j.Providers), j.ProviderRate, int(j.Groups), c.cfg.Seed}, pause)
	if err != nil || j.HeldOut == 0 {
		return d, untold(err)
	}
	return d, untold(d.holdOut(j.HeldOut, pause))
}

// openBase yields the base: the one in memory or that some edge holds, or the cache's,
// checked again.
func (c *client) openBase(ctx context.Context, j *job) (*model.Base, error) {
	if j.base != nil {
		return j.base, nil
	}
	if base := openedBase(j.Base.SHA256); base != nil {
		return base, nil
	}
	blob, err := c.blobs.open(ctx, j.Base, nil)
	if err != nil {
		return nil, err
	}
	return openBlob(j.Base, blob)
}

// checkPlan checks a plan against the job and this device's limits.
func (c *client) checkPlan(p *wire.Plan) error {
	j := c.job
	least, most := j.RankMin, j.RankMax
	if j.HeadOnly {
		least, most = 0, 0
	}
	switch {
	case p.Task != j.task:
		return errors.New("plan is of another task")
	case p.Version >= j.Rounds:
		return fmt.Errorf("%w: it is round %d of %d", ErrPromise, p.Version+1, j.Rounds)
	case p.Rank < least || p.Rank > most:
		return fmt.Errorf("rank %d, the job has %d..%d", p.Rank, least, most)
	case int(p.Values) != j.layout.Size(int(p.Rank)):
		return fmt.Errorf("%d values, the layout has %d at rank %d", p.Values, j.layout.Size(int(p.Rank)), p.Rank)
	case int64(p.CountSymbol) > int64(j.terms.Scheme.MaxSymbol()):
		return fmt.Errorf("clipping count of %d a coordinate, limit %d", p.CountSymbol, j.terms.Scheme.MaxSymbol())
	case int64(p.FigureSymbol) > int64(j.terms.Scheme.MaxSymbol()) || (p.FigureSymbol == 0) != (j.HeldOut == 0):
		return fmt.Errorf("figures of %d a coordinate, limit %d; the job announced that a share of %v is held out",
			p.FigureSymbol, j.terms.Scheme.MaxSymbol(), j.HeldOut)
	case p.OwnNoise != j.Privacy.OwnNoise || p.Honest != j.Privacy.Honest:
		return fmt.Errorf("own noise of %v, counted on for %d devices; the job announced %v for %d", p.OwnNoise, p.Honest, j.Privacy.OwnNoise, j.Privacy.Honest)
	}
	if err := errors.Join(j.checkGroups(p), c.cfg.Policy.checkPlan(&j.Job, p)); err != nil {
		return err
	}
	if _, fresh := p.AdapterSeed(); !fresh {
		if err := quant.CheckNames(p.Slice.Format, p.Slice.Codec); err != nil {
			return err
		}
	}
	return nil
}

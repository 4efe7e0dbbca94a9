// Package core is the arithmetic of a job's rounds: it draws a round, adds the sums of its shards up, adds the noise,
// releases, and takes the server optimizer's step. It has no I/O, no clock and no store. Package coordinator runs it as
// a service, simulate and dp/audit in one process.
package core

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/starling-fl/starling/coordinator/optimizer"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/wasm/program"
)

// Core is a job's arithmetic: how a round is drawn, and what becomes of the sum of its
// contributions. It has no I/O, no clock and no goroutine, and is not safe for concurrent use. A
// service draws and releases through it, and so does a simulation: with the same seed and the same
// sums both arrive at the same adapter.
type Core struct {
	t    *Terms
	rnd  Randomness
	seed uint64         // of the initial adapter
	from *model.Adapter // what it takes over; nil: nothing

	version   uint64  // committed rounds
	nextRound uint64  // number of the next round, never reused
	clip      float64 // clip norm of the next round, at the largest rank
	adapter   *model.Adapter
	optimizer *optimizer.Optimizer
	average   *optimizer.Average // what is released of the last rounds, where the job asks for it
	indices   map[int][]int      // by rank: places in the optimizer's state
	kept      *dp.Correlated     // what the last rounds added; nil unless noise is banded
	movement  Movement
}

// New validates the job against its base and returns its state before the first round. seed
// makes every draw repeatable, and the run not private; nil uses crypto/rand.
func New(j job.Job, base *model.Base, seed []byte) (*Core, error) {
	if seed != nil && len(seed) < 16 {
		return nil, fmt.Errorf("core: seed has %d bytes, must have at least 16", len(seed))
	}
	t, err := NewTerms(j, base)
	if err != nil {
		return nil, err
	}
	c := &Core{t: t, rnd: Randomness{seed}, nextRound: 1, indices: map[int][]int{}}
	start, err := c.rnd.Read("adapter", 0, 8)
	if err != nil {
		return nil, err
	}
	return c, c.Begin(binary.LittleEndian.Uint64(start))
}

// StartFrom begins the job with an adapter that was made elsewhere over the same base, instead of
// the one from the seed (see model.StartFrom).
func (c *Core) StartFrom(a *model.Adapter) error {
	data, err := model.EncodeAdapter(a)
	if err != nil {
		return fmt.Errorf("core: adapter.start: %w", err)
	}
	sum := sha256.Sum256(append(data, a.Layout().Method.Spelled("%v")...))
	c.from, c.t.Start = a, sum[:]
	return c.Begin(c.seed)
}

// Begin returns to the state before the first round, with the adapter of another seed.
func (c *Core) Begin(seed uint64) error {
	var err error
	c.seed, c.clip, c.kept = seed, c.t.Job.Privacy.ClipNorm, nil
	c.adapter = model.NewAdapter(c.t.Layout, seed)
	if c.from != nil {
		if c.adapter, err = model.StartFrom(c.t.Layout, c.from, seed); err != nil {
			return RefuseJob("adapter.start: %w", err)
		}
		if err := contract.CheckStart(c.t.Layout, c.t.Method.RMax, c.adapter.Slice(c.t.Method.RMax), c.t.startBounds()); err != nil {
			return RefuseJob("adapter.start: %w: devices would refuse it. Raise that bound, which their owners have to accept, or make adapter.alpha larger", err)
		}
	}
	n := c.t.Layout.Size(c.t.Method.RMax)
	c.average = optimizer.NewAverage(c.t.Job.Server, c.t.Job.Rounds, n)
	c.optimizer, err = optimizer.New(c.t.Job.Server, n)
	return err
}

// project takes the adapter back to within the bounds that devices check: whatever noise carries
// it beyond, no round of an honest job is refused for what it begins with.
func (c *Core) project() error {
	most := c.t.Method.RMax
	values := c.adapter.Slice(most)
	if !contract.ProjectStart(c.t.Layout, most, values, c.t.startBounds()) {
		return nil
	}
	if err := c.adapter.SetSlice(most, values); err != nil {
		return fmt.Errorf("core: %w", err)
	}
	return nil
}

// optimizerState is the optimizer's, and the average's behind it.
func (c *Core) optimizerState() []byte { return append(c.optimizer.State(), c.average.State()...) }

// restore takes a committed state over.
func (c *Core) restore(version uint64, clip float64, adapter, state []byte) error {
	a, err := model.ParseAdapter(c.t.Layout, adapter)
	n := min(len(state), c.optimizer.Size())
	if err == nil {
		err = c.optimizer.Restore(state[:n])
	}
	if err == nil {
		err = c.average.Restore(state[n:])
	}
	if err != nil {
		return fmt.Errorf("core: checkpoint %d: %w", version, err)
	}
	c.version, c.clip, c.adapter = version, clip, a
	c.movement = Movement{Moved: version > 0} // whether it did is not kept: such a job is not paused
	return c.project()                        // of a build without bounds
}

// StartBounds are the bounds of what rounds begin with, each as devices check it.
func (c *Core) StartBounds() wire.Bounds { return c.t.startBounds() }

// Job is the job with every default filled in.
func (c *Core) Job() job.Job { return c.t.Job }

// Layout is the layout of the adapter.
func (c *Core) Layout() *model.Layout { return c.t.Layout }

// Base returns the frozen model and the SHA-256 of its blob.
func (c *Core) Base() (*model.Base, [32]byte) { return c.t.Base, c.t.BaseRef.SHA256 }

// Adapter returns a copy of the adapter that is shown, measured and exported: the mean of the last
// rounds if the job averages them, otherwise the one that the next round starts from.
func (c *Core) Adapter() *model.Adapter {
	a := c.adapter.Clone()
	if mean := c.average.Mean(); mean != nil {
		if err := a.SetSlice(c.t.Method.RMax, mean); err != nil {
			panic(err) // the whole adapter, of its own length
		}
	}
	return a
}

// Version counts committed rounds.
func (c *Core) Version() uint64 { return c.version }

// NextRound is the number of the next round.
func (c *Core) NextRound() uint64 { return c.nextRound }

// ClipNorm is the clip norm of the next round, at the largest rank.
func (c *Core) ClipNorm() float64 { return c.clip }

// Seed is the seed of the initial adapter.
func (c *Core) Seed() uint64 { return c.seed }

// Terms follow from job and base, and do not change.
func (c *Core) Terms() *Terms { return c.t }

// Randomness is where all of the job's randomness is from.
func (c *Core) Randomness() Randomness { return c.rnd }

// Budget limits the cost of all rounds together. New has verified that they do not cost more.
func (c *Core) Budget() accounting.Budget { return c.t.Budget }

// NoiseMultiplier is z of the budget's guarantee.
func (c *Core) NoiseMultiplier() float64 { return c.t.NoiseMultiplier }

// Ranks lists the ranks that a round may draw.
func (c *Core) Ranks() []int { return c.t.Ranks() }

// Units is the expected number of contributions to a round.
func (c *Core) Units() float64 { return c.t.Units }

// Denominator divides the sum of updates: Units times their mean weight.
func (c *Core) Denominator() float64 { return c.t.Units * c.t.weight() }

// UplinkBits is the width of a masked coordinate on the wire.
func (c *Core) UplinkBits() int { return c.t.Bits }

// ProgramSpec describes the training step of a rank for a host.
func (c *Core) ProgramSpec(rank int, host string) program.Spec {
	return program.Spec{Job: c.t.Job, Base: c.t.Base, Rank: rank, Host: host, Compact: c.t.Compact}
}

// Snapshot is all state of a Core that changes from round to round.
type Snapshot struct {
	Version, NextRound uint64
	ClipNorm           float64
	Adapter            []byte // as model.EncodeAdapter writes it
	Optimizer          []byte
	Noise              []byte `cbor:",omitempty"` // what the last rounds added, of banded noise: secret
}

// Snapshot copies the state between two rounds.
func (c *Core) Snapshot() (Snapshot, error) {
	a, err := model.EncodeAdapter(c.adapter)
	if err != nil {
		return Snapshot{}, fmt.Errorf("core: %w", err)
	}
	noise, err := c.keptNoise()
	return Snapshot{c.version, c.nextRound, c.clip, a, c.optimizerState(), noise}, err
}

// Restore continues from a Snapshot of the same job, base and seed.
func (c *Core) Restore(s Snapshot) error {
	if s.NextRound <= s.Version || !(s.ClipNorm > 0) {
		return fmt.Errorf("core: snapshot of version %d has next round %d and clip norm %v", s.Version, s.NextRound, s.ClipNorm)
	}
	if err := c.restore(s.Version, s.ClipNorm, s.Adapter, s.Optimizer); err != nil {
		return err
	}
	c.nextRound = s.NextRound
	return c.restoreNoise(s.Noise)
}

// ContinueAt gives the next round a number, at least 1: earlier ones were drawn and not released.
func (c *Core) ContinueAt(round uint64) error {
	if round <= c.version {
		return fmt.Errorf("core: the next round is %d after version %d", round, c.version)
	}
	c.nextRound = round
	return nil
}

// Draw is a drawn round that no device has answered yet.
type Draw struct {
	id       uint64  // of the round; contributions' randomness is keyed by it
	rank     int     // 0: the head alone
	clip     float64 // the largest rank's clip norm
	norm     float64 // that of this rank
	rotation [32]byte
	cohort   []int // members of the population that are in
	vector   contract.Vector
	spec     dp.ReleaseSpec
	event    dp.Event // what the round costs
	drawn    dp.Variance
	spread   float64 // variance of a release's noise over that of event; 1 unless noise is banded
	cert     dp.Certificate
	kept     float64 // share of the cohort that its combined sum holds; 1 if it is the sum of all
	fleet    *metric.Fleet
	silent   metric.Noisy // units that reported nothing; zero if the job asks for no figures
}

// Draw begins the next round: it draws rank, rotation and cohort, each from its own randomness. It
// does not check the budget.
func (c *Core) Draw(coins dp.Draw) (*Draw, error) {
	id := c.nextRound
	d := &Draw{id: id, clip: c.clip, kept: 1, spread: 1}
	var err error
	if d.rank, d.rotation, err = c.coordinates(id); err != nil {
		return nil, err
	}
	if d.vector, err = c.t.Vector(d.rank, c.clip, d.rotation); err != nil {
		return nil, err
	}
	if d.cohort, d.cert, err = coins(c.t.Job.Cohort.SamplingRate, c.rnd.Stream("cohort", id)); err != nil {
		return nil, err
	}
	d.norm = c.t.normAt(d.rank, c.clip)
	d.spec = c.t.ReleaseSpec(id, d.vector.B2(), d.cert)
	if err := c.chain(d); err != nil {
		return nil, err
	}
	if d.event, err = d.spec.Event(d.vector.Size()); err != nil {
		return nil, err
	}
	if d.drawn, err = d.event.Drawn(); err != nil {
		return nil, err
	}
	c.nextRound++
	return d, nil
}

// ID is the number of the round.
func (d *Draw) ID() uint64 { return d.id }

// Rank is the rank drawn; 0 trains the head alone.
func (d *Draw) Rank() int { return d.rank }

// Cohort lists the members of the population that are in, ascending.
func (d *Draw) Cohort() []int { return d.cohort }

// Vector describes how a contribution is encoded.
func (d *Draw) Vector() contract.Vector { return d.vector }

// Spec determines the round's noise.
func (d *Draw) Spec() dp.ReleaseSpec { return d.spec }

// ClipNorm is the largest rank's clip norm.
func (d *Draw) ClipNorm() float64 { return d.clip }

// Certificate says how the cohort was drawn.
func (d *Draw) Certificate() dp.Certificate { return d.cert }

// Norm is the L2 bound of one unit's update at this rank. Where its examples are in groups, each
// group's is bounded by its share, the clip norm of Lattice.
func (d *Draw) Norm() float64 { return d.norm }

// Lattice encodes one unit's vector, or that of one of its groups; Count and Figures follow it.
func (d *Draw) Lattice() *quant.Lattice { return d.vector.Lattice }

// Count is the code of the clipping bits.
func (d *Draw) Count() dp.CountCode { return d.vector.Count }

// Figures is the code of the units' figures.
func (d *Draw) Figures() dp.FigureCode { return d.vector.Figures }

// Size is the number of coordinates of a vector, with those of Count and Figures.
func (d *Draw) Size() int { return d.vector.Size() }

// Fleet is what the devices of a released round reported about the adapter that it began with; nil
// if nothing stands out from the noise.
func (d *Draw) Fleet() *metric.Fleet { return d.fleet }

// Rotation is the public seed of the lattice's rotation.
func (d *Draw) Rotation() [32]byte { return d.rotation }

// Event is what the round costs, whether it is released or not.
func (d *Draw) Event() dp.Event { return d.event }

// Variance is the variance of what is drawn for the round's noise: see dp.Event.Drawn.
func (d *Draw) Variance() dp.Variance { return d.drawn }

// Slice returns the adapter at a rank from which devices start a round: the message, and the values that it
// decodes to. message is nil for the initial adapter, which follows from its seed.
func (c *Core) Slice(rank int) (message []byte, values []float32, err error) {
	target := c.adapter.Slice(rank)
	if c.version == 0 && c.t.Start == nil {
		return nil, target, nil
	}
	j := c.t.Job.Wire
	if message, values, err = quant.PackUpdate(target, nil, j.Downlink, j.DownlinkCodec); err != nil {
		return nil, nil, fmt.Errorf("core: downlink: %w", err)
	}
	return message, values, nil
}

// Own is the noise that the round's devices add themselves, each drawing contract.Vector's Own;
// zero if all noise is Release's.
func (c *Core) Own() job.Own { return c.t.Own }

// Own is the variance of the noise that each device adds to its vector; zero for none.
func (d *Draw) Own() dp.Variance { return d.vector.Own }

// Enough reports whether the sum of the given number of devices may be released: if the noise is
// theirs, it must be that of as many honest devices as it is counted for, of so many active ones.
func (c *Core) Enough(devices, active int) bool {
	return devices >= c.t.Own.Needs(c.t.Job, active)
}

// shares is of how many devices' noise a release of so many adds the like.
func (t *Terms) shares(devices int, noiseOnly bool) uint64 {
	if noiseOnly {
		return uint64(max(t.Own.Max, int(t.Own.Honest)))
	}
	return uint64(max(0, t.Own.Max-devices))
}

// OwnNoise is a source for the sum of the devices' own noise, for simulations with too many devices
// to draw it one by one.
func (c *Core) OwnNoise(d *Draw) io.Reader { return c.rnd.Stream("own noise", d.id) }

// Noise is the source of the noise that Release adds.
func (c *Core) Noise(d *Draw) io.Reader { return c.rnd.Stream("noise", d.id) }

// Combine adds up the exact sums of a round's shards, or what shard.trim leaves of them, in sum. A
// nil entry is a shard that is not released.
func (c *Core) Combine(d *Draw, sum []int64, shards [][]int64) error {
	trim := c.t.Job.Shard.Trim
	if err := dp.TrimmedSum(sum, shards, trim); err != nil {
		clear(sum)
		return fmt.Errorf("core: shard.trim: %w", err)
	}
	d.kept = float64(len(shards)-2*trim) / float64(len(shards))
	return nil
}

// Release adds the noise to a round's exact sum, in place, decodes it with the fixed denominator
// and takes the server optimizer's step. noiseOnly says that the cohort was below its floor and the
// sum is zero. The returned event is what the ledger is charged, and clip the next round's clip
// norm, to be given to Commit. devices is the number of devices in the sum: if they added noise
// themselves, noise draws only what is missing, which has another variance in each round.
func (c *Core) Release(d *Draw, sum []int64, devices int, noiseOnly bool, noise dp.Noise) (event dp.Event, clip float64, err error) {
	spec := d.spec
	spec.NoiseOnly, spec.Shares = noiseOnly, c.t.shares(devices, noiseOnly)
	if event, err = dp.Release(sum, spec, noise); err != nil {
		return event, 0, fmt.Errorf("core: noise: %w", err)
	}
	mean, clip, err := c.t.decode(d.vector, d.clip, sum, d.kept)
	if err != nil {
		return event, 0, fmt.Errorf("core: %w", err)
	}
	if !noiseOnly {
		c.note(d, sum, devices, spec.Shares)
	}
	if d.fleet = c.t.fleetMetrics(d, c.version, sum, event, devices, spec.Shares); d.fleet != nil && !c.rnd.Secret() {
		d.fleet.Speed = metric.Noisy{} // which is no two runs' the same: nobody said it
	}
	return event, clip, c.apply(d.rank, mean)
}

// Commit counts a released round and sets the clip norm of the next.
func (c *Core) Commit(clip float64) {
	if c.version, c.clip = c.version+1, clip; c.kept != nil {
		c.kept.Keep()
	}
}

// apply takes the optimizer's step on the values of the round's rank.
func (c *Core) apply(rank int, mean []float32) error {
	index, ok := c.indices[rank]
	if !ok {
		var err error
		if index, err = c.t.Layout.Index(rank); err != nil {
			return err
		}
		c.indices[rank] = index
	}
	values := c.adapter.Slice(rank)
	if err := c.optimizer.Step(values, mean, index); err != nil {
		return fmt.Errorf("core: %w", err)
	}
	if err := c.adapter.SetSlice(rank, values); err != nil {
		return fmt.Errorf("core: %w", err)
	}
	if err := c.project(); err != nil {
		return err
	}
	if err := c.average.Add(c.version+1, c.adapter.Slice(c.t.Method.RMax)); err != nil {
		return fmt.Errorf("core: %w", err)
	}
	return nil
}

// Package contract derives what a coordinator and its devices must agree on, from the
// announced job and a round's plan, so that neither sends it. That is
// the lattice, the clipping count, the width of the ring, secagg's configuration,
// and which slices differences are taken against. The hash that secagg signs
// binds the result; two sides that derive differently never finish a round.
package contract

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// ErrUplink is an uplink scheme that is unknown or cannot carry the job's sums.
var ErrUplink = errors.New("uplink")

// MaxGroups is the most groups that a round's devices are dealt into.
const MaxGroups = wire.MaxGroups

// MaxParts is the most groups that a unit's examples are divided into.
const MaxParts = wire.MaxParts

// Job is the part of a job that a round's vectors and their masking follow from.
type Job struct {
	Uplink    string        // quant's name of the masked scheme
	Providers int           // most providers that a device's sum may hold; 0: the device is the unit
	Groups    int           // that each unit's examples are divided into; 0 and 1: none
	Masking   secagg.Config // Dim, Width, MaxSymbol and MaxSum are any: a round's vectors decide them
	Own       Own           // what each device adds itself
	LogKey    [32]byte      // of the log of enrolled keys, which Masking.Logged rounds have; else zero
}

// Masking is a secagg.Config for Job, whose suite is the hybrid one or X25519 alone: what is
// left to set are the shards, and who certifies their rosters.
func Masking(hybrid bool) secagg.Config {
	c := secagg.Config{Dim: 1, Width: 32, MaxSymbol: 1, Suite: secagg.SuiteX25519}
	if hybrid {
		c.Suite = secagg.SuiteHybrid
	}
	return c
}

// Announced reads a device's Job from the announcement.
func Announced(j *wire.Job) Job {
	c := Masking(j.Hybrid)
	c.ShardMax, c.ShardMin, c.CorruptPPM, c.BreachBits = int(j.ShardMax), int(j.ShardFloor), j.CorruptPPM, int(j.BreachBits)
	c.SemiHonest, c.Identified, c.Authority, c.Logged, c.Dealt = j.SemiHonest, j.Identified, j.RosterKey, j.LogKey != [32]byte{}, j.Dealt
	job := Job{Uplink: j.Uplink, Providers: int(j.Providers), Groups: int(j.Groups), Masking: c, LogKey: j.LogKey}
	if p := j.Privacy; p.OwnNoise != 0 {
		job.Own = Own{p.OwnNoise, p.Delta, j.Rounds}
	}
	return job
}

// Announce writes a coordinator's Job into the announcement: the inverse of Announced.
func (j Job) Announce(to *wire.Job) {
	m := j.Masking
	to.Groups = uint32(j.Groups)
	to.Uplink, to.Providers, to.ShardMax, to.ShardFloor = j.Uplink, uint32(j.Providers), uint16(m.ShardMax), uint16(m.ShardMin)
	to.CorruptPPM, to.BreachBits, to.SemiHonest = m.CorruptPPM, uint16(m.BreachBits), m.SemiHonest
	to.Hybrid, to.Identified, to.RosterKey = m.Suite == secagg.SuiteHybrid, m.Identified, m.Authority
	if o := j.Own; o.Noise != 0 {
		to.Privacy.OwnNoise, to.Privacy.Delta, to.Rounds = o.Noise, o.Delta, o.Rounds
	}
	to.LogKey, to.Dealt = j.LogKey, m.Dealt
}

// Units is the largest number of units of privacy, each clipped by itself, whose
// vectors a device's sum holds.
func (j Job) Units() int { return max(1, j.Providers) }

// Parts is the largest number of vectors, each clipped and quantized by itself, that a device's sum
// holds: one of each group of each unit.
func (j Job) Parts() int { return j.Units() * max(1, j.Groups) }

// Terms hold what a Job fixes for all of its rounds.
type Terms struct {
	Job    Job
	Scheme quant.Scheme
	Width  int // bits of a coordinate on the ring, where devices add no noise: see Bits
}

// Terms looks up the scheme and finds the ring that the sum of a full shard fits;
// the error wraps ErrUplink.
func (j Job) Terms() (Terms, error) {
	scheme, err := quant.Lookup(j.Uplink)
	if err != nil {
		return Terms{}, fmt.Errorf("%w: %w", ErrUplink, err)
	}
	width, err := quant.Width(scheme, j.Masking.ShardMax*j.Parts())
	if err != nil {
		return Terms{}, fmt.Errorf("%w: shards of %d, %d vectors a device: %w", ErrUplink, j.Masking.ShardMax, j.Parts(), err)
	}
	return Terms{j, scheme, width}, nil
}

// Vector is what one unit of privacy (a device, or a provider in one) adds to a
// round: the lattice's symbols and behind them, in a job that adapts the clip
// norm, the count of those within it, and where examples are held out the figures of
// these. One noise draw covers all of it.
//
// Where the unit's examples are in groups it is the sum of the groups' vectors, and lattice, count
// and figures are one group's: the lattice has a Groups-th of the unit's clip norm.
type Vector struct {
	Lattice *quant.Lattice
	Count   dp.CountCode
	Figures dp.FigureCode
	Groups  int // of a unit; 0 and 1: its vector is one

	Own  dp.Variance // of the noise that each device adds to the sum of its units' vectors; zero: none
	tail float64     // standard deviations that such noise is given room for; 0: none
}

// Planned is the vector that a plan asks for.
func (t Terms) Planned(p *wire.Plan) (Vector, error) {
	l, err := t.Lattice(int(p.Values), p.ClipNorm, p.Rotation)
	if err != nil {
		return Vector{}, err
	}
	return t.Vector(l, dp.CountCode{Coordinates: int(p.CountCoordinates), Symbol: int32(p.CountSymbol)},
		dp.FigureCode{Coordinates: int(p.FigureCoordinates), Symbol: int32(p.FigureSymbol)})
}

// Lattice returns the lattice of an update of so many values under an uplink scheme, for
// simulations, which mask nothing. The error wraps ErrUplink.
func Lattice(uplink string, values int, clip float64, groups int, rotation [32]byte) (*quant.Lattice, error) {
	scheme, err := quant.Lookup(uplink)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUplink, err)
	}
	return Terms{Job: Job{Groups: groups}, Scheme: scheme}.Lattice(values, clip, rotation)
}

// Lattice is the lattice of an update of so many values where a unit's clip norm is clip: of a
// group's update, if the unit's examples are in groups.
func (t Terms) Lattice(values int, clip float64, rotation [32]byte) (*quant.Lattice, error) {
	l, err := quant.NewLattice(t.Scheme, values, clip/float64(max(1, t.Job.Groups)), rotation)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUplink, err)
	}
	return l, nil
}

// Size is the number of coordinates.
func (v Vector) Size() int { return v.Lattice.D() + v.Count.Coordinates + v.Figures.Size() }

// PartB2 bounds the squared integer norm of what is clipped by itself: one group's vector, or the
// unit's where it has no groups. No example moves a device's sum by more than its root.
func (v Vector) PartB2() int64 { return v.Lattice.B2() + v.Count.B2() + v.Figures.B2() }

// B2 bounds the squared integer norm of one unit's vector: the sensitivity. By the triangle
// inequality its groups' vectors have a sum of Groups times the norm of one at most.
func (v Vector) B2() int64 {
	k := int64(max(1, v.Groups))
	return k * k * v.PartB2()
}

// CheckSum refuses a shard's exact sum that no honest devices could have made,
// n being the most units that they hold together: a coordinate or a norm beyond
// what n vectors within Q and B2 can add up to, or a count or figures that are none. The error
// wraps quant.ErrRange. No data of honest devices brings it about; nor does their own
// noise, but with a hundredth of the job's delta.
func (v Vector) CheckSum(sum []int64, n, devices int) error {
	if len(sum) != v.Size() {
		return fmt.Errorf("%w: sum of %d coordinates, the round has %d", quant.ErrLength, len(sum), v.Size())
	}
	n *= max(1, v.Groups)
	if v.tail != 0 {
		return v.checkNoisy(sum, n, devices)
	}
	d := v.Lattice.D()
	if err := v.Lattice.CheckSum(sum[:d], n); err != nil {
		return err
	}
	if err := v.checkCount(sum[d:d+v.Count.Coordinates], n); err != nil {
		return err
	}
	if !v.checkFigures(sum[d+v.Count.Coordinates:], n, 0) {
		return errFigures
	}
	// By the triangle inequality n vectors of norm sqrt(B2) have a sum of n times
	// that at most.
	if beyond(sum[:d], n, v.Lattice.B2()) {
		return fmt.Errorf("%w: the norm of a shard's sum is more than %d vectors can have", quant.ErrRange, n)
	}
	return nil
}

var errFigures = fmt.Errorf("%w: a shard's figures are none that its devices can have together", quant.ErrRange)

// checkCount: every unit adds the same symbol, or its opposite, in each of the
// count's coordinates.
func (v Vector) checkCount(sum []int64, n int) error {
	s := int64(v.Count.Symbol)
	for i, x := range sum {
		if limit := s * int64(n); x > limit || x < -limit {
			return &quant.SumRangeError{Index: v.Lattice.D() + i, Value: x, Limit: limit, Survivors: n, Count: 1}
		}
		if x != sum[0] || x%s != 0 {
			return fmt.Errorf("%w: the coordinates of a shard's count do not agree", quant.ErrRange)
		}
	}
	return nil
}

// beyond reports whether the squared norm of sum is above n*n*b2, in 128 bits: a
// coordinate has up to 31 bits, and there are up to 2^26 of them.
func beyond(sum []int64, n int, b2 int64) bool {
	var hi, lo, carry uint64
	for _, x := range sum {
		lo, carry = bits.Add64(lo, uint64(x*x), 0)
		hi += carry
	}
	mostHi, mostLo := bits.Mul64(uint64(n)*uint64(n), uint64(b2))
	return hi > mostHi || hi == mostHi && lo > mostLo
}

// Masking is secagg's configuration of a round. The caller validates it.
func (t Terms) Masking(v Vector) secagg.Config {
	c := t.Job.Masking
	c.Dim = v.Size()
	c.Width, c.MaxSymbol, c.MaxSum = t.room(v)
	return c
}

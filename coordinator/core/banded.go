package core

import (
	"encoding/binary"
	"slices"

	"github.com/starling-fl/starling/dp"
)

// mostKept bounds what banded noise keeps in memory: four bytes for each value of each row.
const mostKept = 1 << 28

// coordinates are the rank and the rotation of round id. Noise cancels between rounds that have both
// in common: with banded noise they are the block's, and follow from the adapter's seed, which
// is public as they are.
func (c *Core) coordinates(id uint64) (rank int, rotation [32]byte, err error) {
	of := c.rnd
	if c.t.Job.Banded() {
		of = Randomness{binary.LittleEndian.AppendUint64([]byte("banded noise"), c.seed)}
		id, _ = c.t.Job.NoiseBlock(c.version)
	}
	if c.t.Ranks()[0] > 0 {
		if rank, err = c.t.Job.Adapter.DrawRank(of.Stream("rank", id)); err != nil {
			return 0, rotation, err
		}
	}
	b, err := of.Read("rotation", id, len(rotation))
	if err != nil {
		return 0, rotation, err
	}
	return rank, [32]byte(b), nil
}

// chain makes a draw the next row of banded noise, if the job has that.
func (c *Core) chain(d *Draw) error {
	rows := c.t.Job.BandedRows()
	if rows == (dp.Banded{}) {
		return nil
	}
	_, before := c.t.Job.NoiseBlock(c.version)
	if c.kept == nil || before == 0 {
		var err error
		if c.kept, err = dp.NewCorrelated(rows, d.vector.Size()); err != nil {
			return err
		}
	}
	rows.Row = c.version + 1
	d.spec.Banded, d.spec.Kept, d.spread = rows, c.kept, rows.Spread(before+1)
	return nil
}

// keptNoise is the state of banded noise, written; nil if there is none.
func (c *Core) keptNoise() ([]byte, error) {
	if c.kept == nil {
		return nil, nil
	}
	return c.kept.AppendBinary(nil)
}

// NextNoise is what a released round added that noise of later ones is to cancel, as a part of
// Snapshot.Noise and as secret: it must be stored with the commit. rows is of how many last rounds
// that has to be kept from then on. ok is false if noise does not cancel.
func (c *Core) NextNoise() (row []byte, rows int, ok bool) {
	if !c.t.Job.Banded() {
		return nil, 0, false
	}
	if row, rows, ok = c.kept.AppendNext(nil); !ok {
		return nil, 0, false
	}
	if _, before := c.t.Job.NoiseBlock(c.version + 1); before == 0 {
		rows = 0 // the block is over
	}
	return row, rows, true
}

// restoreNoise takes over what keptNoise wrote at the version that is restored.
func (c *Core) restoreNoise(b []byte) error {
	rows := c.t.Job.BandedRows()
	_, before := c.t.Job.NoiseBlock(c.version)
	if c.kept = nil; rows == (dp.Banded{}) || before == 0 {
		return nil
	}
	rank, rotation, err := c.coordinates(c.nextRound)
	if err != nil {
		return err
	}
	v, err := c.t.Vector(rank, c.clip, rotation)
	if err != nil {
		return err
	}
	kept, err := dp.NewCorrelated(rows, v.Size())
	if err != nil {
		return err
	}
	if err := kept.UnmarshalBinary(b); err != nil {
		return err
	}
	if want := min(before, int(rows.Band)-1); kept.Rows() != want {
		return RefuseJob("the noise of %d rounds is kept, of %d it must be: without it nothing can be released", kept.Rows(), want)
	}
	c.kept = kept
	return nil
}

// checkKept refuses a band whose noise takes too much memory.
func (t *Terms) checkKept() error {
	band, size := t.Job.Privacy.Band, t.Layout.Size(slices.Max(t.Ranks()))
	if !t.Job.Banded() || (band-1)*size <= mostKept {
		return nil
	}
	return RefuseJob("privacy.band is %d: so many rounds' noise over %d values is more than %d that are kept; a band of %d would do",
		band, size, mostKept, 1+mostKept/size)
}

// cancelled is how much less noise the released adapters have than if each round's were its own, as
// the root mean square over all rounds' adapters.
func (t *Terms) cancelled() float64 {
	if !t.Job.Banded() {
		return 1
	}
	const enough = 20_000 // rounds, beyond which it hardly changes
	rounds, block := min(t.Job.Rounds, enough), enough
	if len(t.Ranks()) > 1 {
		block = t.Job.Privacy.Band
	}
	return t.Job.BandedRows().Prefix(rounds, block)
}

package edge

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/dp"
)

// Noise that cancels between releases hides a device that is in releases far enough apart, and no
// other. This device's own account sees to that: a release counts from the moment at which the
// update is handed over, whatever becomes of it. Only the coordinator's word that it was not made
// takes it back: an outcome, or a plan for the same release once more, as after a crash. How often
// it is believed is bounded, as every job's lost rounds are: see spare.

// apart reports whether the round under way may follow what the job has received.
func (j *job) apart(of *JobAccount) bool {
	least := uint64(j.Privacy.Separation)
	if least == 0 || of.Row == 0 || j.row == of.Row && !of.Released {
		return true
	}
	return j.row >= of.Row && j.row-of.Row >= least
}

// handOver notes the release that an update is handed over for, and in which round.
func (j *JobAccount) handOver(of *job) {
	switch {
	case of.Privacy.Separation == 0:
		return
	case j.Row != of.row:
		j.Before = j.Row
	}
	j.Row, j.Released, j.handed = of.row, false, of.round
}

// mergeRows rests for what both accounts have given.
func (j *JobAccount) mergeRows(from *JobAccount) {
	j.Before = max(min(j.Row, from.Row), j.Before, from.Before)
	if from.Row >= j.Row {
		j.handed = 0 // the other one's
	}
	j.Row, j.Released = max(j.Row, from.Row), j.Row > 0 || from.Row > 0
}

var errTooSoon = errors.New("too soon after another")

// tooSoon is why a round is declined that is not apart.
func (j *job) tooSoon(of *JobAccount) error {
	return fmt.Errorf("%w: it is to be release %d, and this device's update may be in release %d; the job announced at least %d from one to the next",
		errTooSoon, j.row, of.Row, j.Privacy.Separation)
}

// turns is the most releases that the job can have this device in.
func (j *job) turns() uint64 {
	least := uint64(j.Privacy.Separation)
	return j.Rounds/least + min(j.Rounds%least, 1)
}

// noiseOfOne is the noise multiplier of one contribution and all releases that it moves.
func (j *job) noiseOfOne() float64 {
	p := j.Privacy
	b := dp.Banded{Band: p.Band, Separation: p.Separation, Eighths: p.Eighths, Row: 1}
	return p.NoiseMultiplier / math.Sqrt(b.Cost(p.Separation)) * (1 - 0x1p-50)
}

// abandoned records that a round released nothing, by the coordinator's word: the device need not
// rest for it. A coordinator that lies here adds no noise that protects anybody either. Another client
// of the account may have handed over for the same release in a later round: of that the word says nothing.
func (a *Account) abandoned(j *job) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of(j)
	if of.Row == 0 || of.handed != j.round {
		return nil // the last update was not handed over in this round
	}
	of.Row, of.Released, of.handed = of.Before, true, 0
	return a.keep()
}

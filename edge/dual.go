package edge

import (
	"fmt"
	"sync"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/quant"
)

// Dual is the dual variable that one device keeps of one job between rounds if training.dual asks
// for it, as in DP-CLGECL (Tobaben et al., algorithm 2). It holds the local models close to the
// common one. With w the adapter that a round begins with, and w' what this device made of the
// adapter in the round that it last took part in,
//
//	lambda += w - w'
//
// and lambda is added to the result of training before it is clipped. It begins at 0, where the
// paper draws it at random. A value that a round's rank leaves out waits for a round that trains
// it.
//
// It stays in memory: a device that restarts begins anew. It depends on the device's data and not
// only on what was released, so that one unit's data moves all later vectors of its device. The
// noise covers a vector of norm S in each round whatever is in it, which is enough if the device is
// the unit of privacy. If providers are the unit, one provider would move the vectors of the others
// by more than the noise hides; then Noisy must be set, and each vector must carry all of the
// noise.
//
// The zero value is ready to use once Units is set.
type Dual struct {
	// Units is the expected number of units in the device's vector: 1, or the mean number of
	// providers. The common adapter moves by the mean over them.
	Units float64
	// Noisy includes the device's own noise in w', as algorithm 2 does. It must not be set unless
	// each vector carries all of the noise: lambda would bring the noise of a round into the next
	// round's sum, and the two sums together would cancel it.
	Noisy bool

	mu   sync.Mutex
	kept dualState // by mu
}

// dualState holds a Dual's values, in the order of the vector at the largest rank.
type dualState struct {
	_      struct{} `cbor:",toarray"`
	Lambda []float32
	Local  []float32 // w'
	Took   []bool    // Local has it, and Lambda does not count it yet
}

// A DualRound is the use of a Dual in one contribution. The Dual stays as it was until Keep is
// called, so that a contribution that was not handed over, or came too late, does not count.
type DualRound struct {
	dual   *Dual
	index  []int     // of the round's values in the vector at the largest rank
	lambda []float32 // the round's
	local  []float32 // w'; nil until there is a vector
}

// Round begins a contribution; nil for a nil Dual.
func (d *Dual) Round() *DualRound {
	if d == nil {
		return nil
	}
	return &DualRound{dual: d}
}

// begin finds lambda in a round.
func (r *DualRound) begin(t Task) (err error) {
	if r.index, err = t.Layout.Index(t.Rank); err != nil {
		return err
	}
	size := t.Layout.Size(t.Layout.Method.RMax)
	r.dual.mu.Lock()
	defer r.dual.mu.Unlock()
	k := &r.dual.kept
	if k.Lambda == nil {
		*k = dualState{Lambda: make([]float32, size), Local: make([]float32, size), Took: make([]bool, size)}
	}
	if len(k.Lambda) != size || len(r.index) != len(t.Start) {
		return fmt.Errorf("edge: a dual variable of %d values, the adapter has %d", len(k.Lambda), size)
	}
	r.lambda = make([]float32, len(r.index))
	for i, at := range r.index {
		if r.lambda[i] = k.Lambda[at]; k.Took[at] {
			r.lambda[i] += t.Start[i] - k.Local[at]
		}
	}
	return nil
}

// end notes what the device's vector says, the sum of its units'.
func (r *DualRound) end(t Task, l *quant.Lattice, symbols []int32) error {
	sum := make([]int64, l.D())
	defer clear(sum)
	for i := range sum {
		sum[i] = int64(symbols[i])
	}
	said, err := l.DecodeMean(sum, r.dual.Units)
	if err != nil {
		return err
	}
	for i, v := range t.Start {
		said[i] += v
	}
	r.local = said
	return nil
}

// Keep updates the Dual after the contribution was handed over. It does nothing on nil.
func (r *DualRound) Keep() {
	if r == nil || r.local == nil {
		return
	}
	r.dual.mu.Lock()
	defer r.dual.mu.Unlock()
	k := &r.dual.kept
	for i, at := range r.index {
		k.Lambda[at], k.Local[at], k.Took[at] = r.lambda[i], r.local[i], true
	}
}

// dual is what the device keeps of the job, nil if that asks for nothing. Another job begins
// its own.
func (c *client) dual(j *job) *Dual {
	if j.Dual == 0 {
		return nil
	}
	if c.kept.of != j.task || c.kept.Dual == nil {
		c.kept = keptDual{of: j.task, Dual: &Dual{Units: j.Dual, Noisy: j.Privacy.Noise == wire.NoiseSilo}}
	}
	return c.kept.Dual
}

// keptDual is a job's.
type keptDual struct {
	of [32]byte
	*Dual
}

package edge

import (
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/quant"
)

// Dual is what one device keeps of one job between rounds where training.dual asks for it:
// the dual variable of DP-CLGECL (Tobaben et al., algorithm 2), which holds the local models
// to the common one. With w the adapter that a round begins with, and w' what this device made
// of the one that it took part in before,
//
//	lambda += w - w'
//
// and lambda is added to what training gives, before that is clipped. It begins at 0, where the
// paper draws it. A value that a round's rank leaves out waits for a round that has it.
//
// It stays in memory: a device that ends begins anew. It holds what the device's data gave, not
// what was released, so that one unit's data moves all later vectors of its device. The
// noise is made for one vector of norm S a round whatever is in it: where the device is the
// unit, that is enough. Where providers are, another's vector would move with a provider's, by
// more than the noise hides; then Noisy must be set, and each vector carry all of the noise.
//
// The zero value is ready, but for Units.
type Dual struct {
	// Units are expected in the device's vector: 1, or the mean number of providers. The common
	// adapter moves by the mean over them.
	Units float64
	// Noisy takes the device's own noise for a part of w', as algorithm 2 does. Where a
	// vector does not carry all of the noise it must not: lambda would bring the noise of a round
	// into the next one's sum, and both sums together would have it taken away.
	Noisy bool

	mu   sync.Mutex
	kept dualState // by mu
}

// dualState are a Dual's values, in the order of the vector at the largest rank.
type dualState struct {
	_      struct{} `cbor:",toarray"`
	Lambda []float32
	Local  []float32 // w'
	Took   []bool    // Local has it, and Lambda does not count it yet
}

// A DualRound is a Dual in one contribution. Until that was handed over, and Keep was called,
// the Dual is as it was: a contribution that comes too late, or to nothing, is not what the
// device said.
type DualRound struct {
	dual   *Dual
	index  []int     // of the round's values in the vector at the largest rank
	lambda []float32 // the round's
	local  []float32 // w'; nil until there is a vector
}

// Round begins a contribution; nil of a nil Dual.
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

// Keep has the Dual go on from the contribution, which was handed over; of nil it is none.
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

// dual is what the device keeps of the job, nil where that asks for nothing. Another job begins
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

// MarshalBinary is for simulations, which go on after an interruption: a device writes it nowhere.
func (d *Dual) MarshalBinary() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := cbor.Marshal(d.kept)
	if err != nil {
		return nil, fmt.Errorf("edge: a dual variable: %w", err)
	}
	return b, nil
}

// UnmarshalBinary takes what MarshalBinary gave.
func (d *Dual) UnmarshalBinary(b []byte) error {
	var k dualState
	if err := cbor.Unmarshal(b, &k); err != nil {
		return fmt.Errorf("edge: a dual variable: %w", err)
	}
	if len(k.Local) != len(k.Lambda) || len(k.Took) != len(k.Lambda) {
		return fmt.Errorf("edge: a dual variable of %d values for %d and %d", len(k.Lambda), len(k.Local), len(k.Took))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = k
	return nil
}

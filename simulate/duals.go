package simulate

import (
	"fmt"
	"slices"
	"sync"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
)

// mostDuals bounds what clients' dual variables may take: 9 bytes a value and client, and as
// much again in a state's file.
const mostDuals = 1 << 29

// duals are what clients keep between rounds, by their numbers.
type duals struct {
	units float64
	noisy bool

	mu sync.Mutex
	of map[int]*edge.Dual // by mu
}

// newDuals refuses what a dual variable cannot be simulated with.
func (r *Run) newDuals() (*duals, error) {
	if n := r.cfg.Population.Len(); n > largestRoll {
		return nil, fmt.Errorf("%w: training.dual with %d clients, the limit is %d", ErrConfig, n, largestRoll)
	}
	size := r.core.Layout().Size(slices.Max(r.core.Ranks()))
	if need := 9 * float64(r.cfg.Population.Len()) * float64(size); need > mostDuals {
		return nil, fmt.Errorf("%w: training.dual has each of %d clients keep %d values, %.3g MB of at most %d: simulate fewer clients, or lower adapter.rank_max",
			ErrConfig, r.cfg.Population.Len(), size, need/1e6, mostDuals/1_000_000)
	}
	if r.cfg.Collect != nil {
		return nil, fmt.Errorf("%w: training.dual has clients keep state between rounds, which workers elsewhere do not: simulate in one process", ErrConfig)
	}
	return &duals{units: r.job.UnitsPerDevice(), noisy: r.job.Privacy.Noise == "silo", of: map[int]*edge.Dual{}}, nil
}

// client's own; nil if there are none.
func (d *duals) client(n int) *edge.Dual {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of[n] == nil {
		d.of[n] = &edge.Dual{Units: d.units, Noisy: d.noisy}
	}
	return d.of[n]
}

// own is the noise that clients are to know of: zero if they are not. The sum gets it
// elsewhere.
func (d *duals) own(v dp.Variance) dp.Variance {
	if d == nil || !d.noisy {
		return dp.Variance{}
	}
	return v
}

// kept is what a state's file has of them.
func (d *duals) kept() (map[int][]byte, error) {
	if d == nil {
		return nil, nil
	}
	out := map[int][]byte{}
	for n, one := range d.of {
		b, err := one.MarshalBinary()
		if err != nil {
			return nil, err
		}
		out[n] = b
	}
	return out, nil
}

// takeUp continues from kept's.
func (d *duals) takeUp(kept map[int][]byte) error {
	if d == nil {
		return nil
	}
	for n, b := range kept {
		if err := d.client(n).UnmarshalBinary(b); err != nil {
			return err
		}
	}
	return nil
}

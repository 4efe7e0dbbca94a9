package queue

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/simulate"
)

// Audit is the share of the results, drawn when they are there, that the simulating process
// computes again, by a trainer of its own. Runs are equal to the bit, so that any
// difference is a lie, or a machine that computes otherwise.
type Audit struct {
	Share   float64      // in 0..1
	Trainer edge.Trainer // nil: there is none
}

// audited is what a result that was taken has to be equal to.
type audited struct {
	worker string
	places []int
	tally  *simulate.Tally
}

// drawn reports whether a result is computed again. Anyone who made it could not know.
func (a Audit) drawn() bool {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails: package crypto/rand
	return a.Trainer != nil && float64(binary.LittleEndian.Uint64(b[:])>>11)*0x1p-53 < a.Share
}

// hold computes a result again and returns an error if it is another.
func (a Audit) hold(ctx context.Context, of *simulate.Assignment, n int, r audited, put func(at int) (simulate.Client, error)) error {
	own := of.NewTally(n)
	for _, at := range r.places {
		c, err := put(at)
		if err != nil {
			return err
		}
		symbols, norms, err := of.Contribute(ctx, a.Trainer, c)
		if err != nil {
			return fmt.Errorf("queue: audit: %w", err)
		}
		own.Add(at, symbols, norms)
	}
	what := ""
	switch {
	case !slices.Equal(own.Sum, r.tally.Sum):
		what = "the sum"
	case own.Empty != r.tally.Empty:
		what = "how many clients have no examples"
	default:
		for _, at := range r.places {
			if !slices.EqualFunc(own.Norms[at], r.tally.Norms[at], func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }) {
				what = "a norm"
			}
		}
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("queue: worker %q lied, or its machine computes otherwise: %s of the clients at places %d to %d in round %d is another "+
		"when this process computes it. The run ends here; what it made before may hold more of that worker's results",
		r.worker, what, r.places[0], r.places[len(r.places)-1], of.Round)
}

package optimizer

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/starling-fl/starling/job"
)

// Average is the mean of the last rounds' parameters (Polyak and Juditsky 1992), which a job may
// release in place of the last ones: the noise of its rounds averages out, while the rounds
// themselves continue from the parameters as they are. It sees only what was released before, so it
// is post-processing and costs no privacy. It keeps one vector. It is not safe for concurrent use.
type Average struct {
	after uint64 // the first rounds, which are not in it
	n     int
	count uint32 // rounds in mean
	mean  []float32
}

// NewAverage returns the average for a job of the given number of rounds, over n parameters.
func NewAverage(cfg job.Server, rounds, n int) *Average {
	a := &Average{after: math.MaxUint64, n: n} // of a job that asks for none
	if cfg.Average > 1 {
		a.after = uint64(max(0, rounds-cfg.Average))
	}
	return a
}

// Add adds the parameters after a round to the mean, if the round is one of the last.
func (a *Average) Add(round uint64, x []float32) error {
	if len(x) != a.n {
		return fmt.Errorf("optimizer: %d parameters in a mean of %d", len(x), a.n)
	}
	if round <= a.after { // and again where a job was given more rounds
		a.count, a.mean = 0, nil
		return nil
	}
	if a.mean == nil {
		a.mean = make([]float32, a.n)
	}
	a.count++
	for i, v := range x {
		m := float64(a.mean[i])
		a.mean[i] = float32(m + (float64(v)-m)/float64(a.count))
	}
	return nil
}

// Mean returns the mean, which the caller must not change; nil before the second of the last
// rounds, when it is the parameters themselves.
func (a *Average) Mean() []float32 {
	if a.count < 2 {
		return nil
	}
	return a.mean
}

// State returns the mean for the checkpoint: nothing if there is none yet, else the number of its
// rounds and the mean as little-endian float32.
func (a *Average) State() []byte {
	if a.count == 0 {
		return nil
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+4*a.n), a.count)
	for _, v := range a.mean {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Restore continues from a result of State.
func (a *Average) Restore(b []byte) error {
	if len(b) == 0 {
		a.count, a.mean = 0, nil
		return nil
	}
	if len(b) != 4+4*a.n {
		return fmt.Errorf("%w: %d bytes, the mean of %d parameters has %d", ErrState, len(b), a.n, 4+4*a.n)
	}
	if a.count = binary.LittleEndian.Uint32(b); a.count == 0 {
		return fmt.Errorf("%w: a mean of no rounds", ErrState)
	}
	a.mean = make([]float32, a.n)
	for i := range a.mean {
		a.mean[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4+4*i:]))
	}
	return nil
}

package pretraining

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/model"
)

// Spec holds the settings that all kinds of pretraining share.
type Spec struct {
	Config       model.Config
	Batch        int // rows of a step
	Sequence     int // tokens of a row, or of what a decoder reads and writes; frames of a recording
	Steps        int
	LearningRate float64 // peak
	Seed         uint64  // of initialisation, order and what is drawn; public

	// StatePath is a file that keeps the state of an interrupted run, about every
	// minute and where ctx ends: the next run with the same inputs continues from
	// there. The caller removes it once the result is safe. Empty keeps nothing.
	StatePath string

	// Backend runs the steps; nil is the Go backend. The compiler's programs
	// are several times faster.
	Backend compute.Backend
}

func (s Spec) check() error {
	switch {
	case s.Batch < 1 || s.Batch > 4096:
		return fmt.Errorf("pretraining: batch is %d, want 1..4096", s.Batch)
	case s.Steps < 1 || s.Steps > 1e7:
		return fmt.Errorf("pretraining: steps is %d, want 1..1e7", s.Steps)
	case !(s.LearningRate > 0 && s.LearningRate < 1):
		return fmt.Errorf("pretraining: learning rate is %v, want within (0, 1)", s.LearningRate)
	}
	return nil
}

// rate is the learning rate of step i (from 0): up over the first warm steps, then linearly down to zero.
func (s Spec) rate(i, warm int) float32 {
	up := float64(i+1) / float64(warm)
	down := float64(s.Steps-i) / float64(max(1, s.Steps-warm))
	return float32(s.LearningRate * math.Min(1, math.Min(up, down)))
}

// Progress is told after each step of pretraining; a resumed run begins after the
// steps that were done.
type Progress func(step int, loss float32)

// savePeriod is how much work a crash may cost. A save takes the time of a few
// steps.
const savePeriod = time.Minute

// run is pretraining from step to step, and its state on disk: every trained tensor and its moments
// after a number of steps, as safetensors. What was drawn from the seed until then
// is drawn again on the way, so that a resumed run makes the same base, bit for bit.
type run struct {
	spec    Spec
	inputs  string                                      // fingerprint of all that the result follows from
	tensors []model.TensorSpec                          // of the state
	value   func(t model.TensorSpec) ([]float32, error) // of one of them, now
	saved   time.Time
}

func fingerprint(inputs []byte) string {
	sum := sha256.Sum256(inputs)
	return hex.EncodeToString(sum[:])
}

// load returns the steps done and the values of an earlier run that was
// interrupted, 0 where there is none. A state of other text or settings is left
// alone and reported: training over it would lose it.
func (r *run) load() (steps int, values map[string][]float32, err error) {
	if r.spec.StatePath == "" {
		return 0, nil, nil
	}
	data, err := os.ReadFile(r.spec.StatePath)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err == nil {
		steps, values, err = r.parse(data)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("pretraining: state of an interrupted run %s: %w; remove it to begin anew", r.spec.StatePath, err)
	}
	return steps, values, nil
}

func (r *run) parse(data []byte) (steps int, values map[string][]float32, err error) {
	st, err := model.ParseSafeTensors(data)
	if err != nil {
		return 0, nil, err
	}
	if st.Metadata["fingerprint"] != r.inputs {
		return 0, nil, errors.New("it is of another corpus, of other settings or of an older build")
	}
	if steps, err = strconv.Atoi(st.Metadata["steps"]); err != nil || steps < 1 || steps > r.spec.Steps {
		return 0, nil, fmt.Errorf("steps is %q, want 1..%d", st.Metadata["steps"], r.spec.Steps)
	}
	values = map[string][]float32{}
	for _, t := range r.tensors {
		v, err := st.Tensor(t.Name)
		if err == nil && len(v.Data) != model.Elements(t.Shape) {
			err = fmt.Errorf("tensor %q has %d values, want %d", t.Name, len(v.Data), model.Elements(t.Shape))
		}
		if err != nil {
			return 0, nil, err
		}
		values[t.Name] = v.Data
	}
	return steps, values, nil
}

// save writes the state after a number of steps.
func (r *run) save(steps int) error {
	if r.spec.StatePath == "" {
		return nil
	}
	r.saved = time.Now()
	st := &model.SafeTensors{Metadata: map[string]string{"fingerprint": r.inputs, "steps": strconv.Itoa(steps)}}
	for _, t := range r.tensors {
		v, err := r.value(t)
		if err == nil {
			err = st.Add(t.Name, "F32", t.Shape, v)
		}
		if err != nil {
			return err
		}
	}
	data, err := st.Encode()
	if err != nil {
		return err
	}
	if err := model.WriteFiles(filepath.Dir(r.spec.StatePath), map[string][]byte{filepath.Base(r.spec.StatePath): data}); err != nil {
		return fmt.Errorf("pretraining: state: %w", err)
	}
	return nil
}

// steps makes those that are left after done of them. It checks ctx between steps.
func (r *run) steps(ctx context.Context, done int, step func(i int) (loss float32, err error), progress Progress) error {
	r.saved = time.Now()
	for i := done; i < r.spec.Steps; i++ {
		if err := ctx.Err(); err != nil {
			if i > done {
				err = errors.Join(err, r.save(i))
			}
			return err
		}
		loss, err := step(i)
		if err != nil {
			return err
		}
		if loss-loss != 0 {
			return fmt.Errorf("pretraining: the loss of step %d is %v: pretraining diverged, a lower learning rate may not", i+1, loss)
		}
		if progress != nil {
			progress(i+1, loss)
		}
		if i+1 == r.spec.Steps || time.Since(r.saved) >= savePeriod {
			if err := r.save(i + 1); err != nil {
				return err
			}
		}
	}
	return nil
}

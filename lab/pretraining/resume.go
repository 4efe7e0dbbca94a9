package pretraining

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/tokenizer"
)

// savePeriod is how much work a crash may cost. A save takes the time of a few
// steps.
const savePeriod = time.Minute

// saved is pretraining's state on disk: every trained tensor and its moments
// after a number of steps, as safetensors. What was drawn from the seed until then
// is drawn again on the way, so that a resumed run makes the same base, bit for bit.
type saved struct {
	path        string // "" keeps nothing
	fingerprint string // of the spec, the tokenizer and the rows
	last        time.Time
}

func newSaved(s EncoderSpec, tok *tokenizer.WordPiece, rows [][]int32) (*saved, error) {
	if s.StatePath == "" {
		return &saved{}, nil
	}
	js, err := tok.MarshalJSON()
	if err != nil {
		return nil, err
	}
	spec := s
	spec.Backend, spec.StatePath = nil, ""
	h := sha256.New()
	fmt.Fprintf(h, "starling pretraining 1\n%+v\n%d %s\n%d\n", spec, len(js), js, len(rows))
	for _, r := range rows {
		if err := binary.Write(h, binary.LittleEndian, r); err != nil {
			return nil, err
		}
	}
	return &saved{path: s.StatePath, fingerprint: hex.EncodeToString(h.Sum(nil)), last: time.Now()}, nil
}

// load returns the steps done and the values of an earlier run that was
// interrupted, 0 where there is none. A state of other text or settings is left
// alone and reported: training over it would lose it.
func (f *saved) load(s EncoderSpec) (steps int, values map[string][]float32, err error) {
	if f.path == "" {
		return 0, nil, nil
	}
	fail := func(err error) (int, map[string][]float32, error) {
		return 0, nil, fmt.Errorf("pretraining: state of an interrupted run %s: %w; remove it to begin anew", f.path, err)
	}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return fail(err)
	}
	st, err := model.ParseSafeTensors(data)
	if err != nil {
		return fail(err)
	}
	if st.Metadata["fingerprint"] != f.fingerprint {
		return fail(errors.New("it is of another corpus or other settings"))
	}
	if steps, err = strconv.Atoi(st.Metadata["steps"]); err != nil || steps < 1 || steps > s.Steps {
		return fail(fmt.Errorf("steps is %q, want 1..%d", st.Metadata["steps"], s.Steps))
	}
	values = map[string][]float32{}
	for _, t := range s.step().Trained(s.Config.VocabSize) {
		for _, suffix := range []string{"", nn.AdamMean, nn.AdamVariance} {
			v, err := st.Tensor(t.Name + suffix)
			if err == nil && len(v.Data) != model.Elements(t.Shape) {
				err = fmt.Errorf("tensor %q has %d values, want %d", t.Name+suffix, len(v.Data), model.Elements(t.Shape))
			}
			if err != nil {
				return fail(err)
			}
			values[t.Name+suffix] = v.Data
		}
	}
	return steps, values, nil
}

// save writes the state after a number of steps if it is time to, or at once.
func (f *saved) save(r *pretraining, steps int, now bool) error {
	if f.path == "" || !now && time.Since(f.last) < savePeriod {
		return nil
	}
	f.last = time.Now()
	st := &model.SafeTensors{Metadata: map[string]string{"fingerprint": f.fingerprint, "steps": strconv.Itoa(steps)}}
	for _, t := range r.spec.step().Trained(r.spec.Config.VocabSize) {
		for _, suffix := range []string{"", nn.AdamMean, nn.AdamVariance} {
			v := r.values[t.Name+suffix]
			if !local(t.Name) {
				var err error
				if v, err = nn.Floats(r.state[t.Name+suffix], model.Elements(t.Shape)); err != nil {
					return err
				}
			}
			if err := st.Add(t.Name+suffix, "F32", t.Shape, v); err != nil {
				return err
			}
		}
	}
	data, err := st.Encode()
	if err != nil {
		return err
	}
	if err := model.WriteFiles(filepath.Dir(f.path), map[string][]byte{filepath.Base(f.path): data}); err != nil {
		return fmt.Errorf("pretraining: state: %w", err)
	}
	return nil
}

package pretraining

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/trainer"
)

// WriterSpec describes pretraining of a base that writes text, a T5 or a decoder, or of one
// that hears, which labels recordings meanwhile: full fine-tuning, with the step that devices
// have, of a base that starts at random. Optimizer: AdamW with linear warm-up over a twentieth
// of the steps and linear decay to zero.
type WriterSpec struct {
	Config       model.Config
	Batch        int // examples of a step
	Sequence     int // tokens of a document, or of what a decoder reads and writes; frames of a recording
	Answer       int // tokens that a T5 writes
	Classes      int // labels of recordings; the head that tells them is not the base's
	Steps        int
	LearningRate float64 // peak
	Seed         uint64  // of initialisation and of what is drawn; public

	Start     []model.Tensor  // of a base that is trained further; nil: it starts at random
	StatePath string          // as EncoderSpec's
	Backend   compute.Backend // as EncoderSpec's
	Source    string          // names what Draw draws from: a state of another source is not gone on from
}

// method is what pretraining trains.
func (s WriterSpec) method() model.Method {
	m := model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull, Task: model.TaskAnswer, Answer: s.Answer}
	switch {
	case s.Config.Causal():
		m.Task, m.Answer = model.TaskCausal, 0
	case s.Config.Hears():
		m.Task, m.Answer = model.TaskListen, 0
	}
	return m
}

// Layout is that of what the step trains and of the columns that Draw fills.
func (s WriterSpec) Layout() (*model.Layout, error) { return s.step().Layout() }

func (s WriterSpec) step() nn.StepSpec {
	return nn.StepSpec{Config: s.Config, Method: s.method(), Classes: s.Classes, Spec: training.Spec{Batch: s.Batch, Optimizer: training.AdamW}, Sequence: s.Sequence, Smooth: s.Backend == nil}
}

// Draw fills a batch: of a step from 0, with a generator of its own, done of the steps
// behind it.
type Draw func(step int, rng *rand.Rand, done float64, b task.Batch) error

// Writer trains and returns the tensors. The same inputs give the same tensors on
// one kind of processor, interrupted or not. It checks ctx between steps.
func Writer(ctx context.Context, s WriterSpec, draw Draw, progress Progress) ([]model.Tensor, error) {
	lay, err := s.Layout()
	if err != nil {
		return nil, err
	}
	switch {
	case s.Steps < 1 || s.Steps > 1e7:
		return nil, fmt.Errorf("pretraining: steps is %d, want 1..1e7", s.Steps)
	case !(s.LearningRate > 0 && s.LearningRate < 1):
		return nil, fmt.Errorf("pretraining: learning rate is %v, want within (0, 1)", s.LearningRate)
	}
	columns, err := task.Columns(lay, s.Sequence)
	if err != nil {
		return nil, err
	}
	prog, err := nn.Compile(s.Backend, "pretrain-writer", s.step().Build)
	if err != nil {
		return nil, err
	}
	r := &writerPretraining{spec: s, layout: lay, prog: prog, state: map[string]compute.Buffer{}, frozen: map[string]compute.Buffer{}, last: time.Now()}
	done, err := r.begin()
	if err != nil {
		return nil, err
	}
	batch := task.NewBatch(columns, s.Batch)
	for i := done; i < s.Steps; i++ {
		if err := ctx.Err(); err != nil {
			if i > done {
				err = errors.Join(err, r.save(i, true))
			}
			return nil, err
		}
		if err := draw(i, rand.New(rand.NewPCG(s.Seed, uint64(i))), float64(i)/float64(s.Steps), batch); err != nil {
			return nil, err
		}
		inputs := map[string]any{trainer.InputRate: []float32{s.rate(i)}, trainer.InputStep: []float32{float32(i + 1)}}
		for _, v := range batch {
			if inputs[v.Name] = v.I32; v.Type == task.F32 {
				inputs[v.Name] = v.F32
			}
		}
		loss, _, err := prog.Advance(r.state, r.frozen, inputs)
		if err != nil {
			return nil, err
		}
		if loss-loss != 0 {
			return nil, fmt.Errorf("pretraining: the loss of step %d is %v: pretraining diverged, a lower learning rate may not", i+1, loss)
		}
		if progress != nil {
			progress(i+1, loss)
		}
		if err := r.save(i+1, i+1 == s.Steps); err != nil {
			return nil, err
		}
	}
	return r.finish()
}

func (s WriterSpec) rate(i int) float32 {
	warm := max(1, s.Steps/20)
	up := float64(i+1) / float64(warm)
	down := float64(s.Steps-i) / float64(max(1, s.Steps-warm))
	return float32(s.LearningRate * math.Min(1, math.Min(up, down)))
}

// initial is T5's initialisation (transformers' T5PreTrainedModel), a decoder's
// (LlamaPreTrainedModel), or a listener's (filters, or what keeps as loud from convolution to
// convolution), each tensor from a generator of its own.
func (s WriterSpec) initial(t model.TensorSpec, n int) []float32 {
	c := s.Config
	h := float64(c.HiddenSize)
	for i := range c.Speech.Width.Len() {
		if conv, _ := model.SpeechConvolution(i); t.Name == conv+".weight" {
			if v := filters(c.Speech, i, rand.New(rand.NewPCG(s.Seed^0x7435, uint64(n)))); v != nil {
				return v
			}
		}
	}
	std, mean := 1/math.Sqrt(h), 0.0
	switch {
	case c.Hears() && len(t.Shape) == 3 && t.Name != model.SpeechPositionsLength: // He et al. 2015
		std = math.Sqrt(2 / float64(t.Shape[1]*t.Shape[2]))
	case c.Hears() && len(t.Shape) == 2:
	case t.Name == model.SpeechPositionsLength:
		std, mean = 0, 1
	case c.Causal() && len(t.Shape) == 2:
		std = initStd
	case strings.HasSuffix(t.Name, ".bias"):
		std = 0
	case len(t.Shape) == 1:
		std, mean = 0, 1
	case t.Name == model.T5Shared:
		std = 1
	case strings.HasPrefix(t.Name, "spatial_embedding.") && strings.HasSuffix(t.Name, "position_embeddings.weight"):
		std = 0.1
	case strings.HasSuffix(t.Name, "Attention.q.weight"):
		std = 1 / math.Sqrt(h*float64(c.T5.KeySize))
	case strings.HasSuffix(t.Name, ".o.weight"):
		std = 1 / math.Sqrt(float64(c.InnerSize()))
	case strings.HasSuffix(t.Name, ".wo.weight"):
		std = 1 / math.Sqrt(float64(c.IntermediateSize))
	case t.Name == model.T5PatchMap+".weight", t.Name == model.T5PageMatcher+".weight", t.Name == model.T5BoxMatcher+".weight":
		std = 1 / math.Sqrt(float64(model.Elements(t.Shape[1:])))
	}
	rng := rand.New(rand.NewPCG(s.Seed^0x7435, uint64(n)))
	v := make([]float32, model.Elements(t.Shape))
	for i := range v {
		v[i] = float32(mean + std*rng.NormFloat64())
	}
	return v
}

// writerPretraining is a run: the differences from the start and their moments.
type writerPretraining struct {
	spec   WriterSpec
	layout *model.Layout
	prog   *nn.Program
	start  []model.Tensor
	state  map[string]compute.Buffer
	frozen map[string]compute.Buffer
	last   time.Time // of the state's writing
}

// begin sets the start, and the state to zero or to what an interrupted run left after
// so many steps.
func (r *writerPretraining) begin() (done int, err error) {
	values := map[string][]float32{}
	given := map[string]model.Tensor{}
	for _, t := range r.spec.Start {
		given[t.Name] = t
	}
	for i, t := range r.spec.Config.BaseTensors() {
		v := slices.Clone(given[t.Name].Data)
		if r.spec.Start == nil {
			v = r.spec.initial(t, i)
		} else if len(v) != model.Elements(t.Shape) {
			return 0, fmt.Errorf("pretraining: the base to start from has %d values of %s, want %d", len(v), t.Name, model.Elements(t.Shape))
		}
		r.start = append(r.start, model.Tensor{Name: t.Name, Shape: t.Shape, Data: v})
		values[t.Name] = v
	}
	left, done, err := r.load()
	if err != nil {
		return 0, err
	}
	head := map[string][]float32{} // with what else does not start at zero
	for _, t := range model.NewAdapter(r.layout, r.spec.Seed).Tensors() {
		head[t.Name] = t.Data
	}
	for _, p := range r.prog.Params {
		if p.Role == nn.Input {
			continue
		}
		to, v := r.frozen, values[p.Name]
		if p.Role == nn.State {
			if to, v = r.state, left[p.Name]; v == nil {
				v = head[p.Name]
			}
			if v == nil {
				v = make([]float32, model.Elements(p.Shape))
			}
		}
		if to[p.Name], err = r.prog.Buffer(p, v); err != nil {
			return 0, err
		}
	}
	return done, nil
}

func (r *writerPretraining) fingerprint() string {
	s := r.spec
	s.Backend, s.StatePath, s.Start = nil, "", nil // Source says which start
	sum := sha256.Sum256(fmt.Appendf(nil, "starling T5 pretraining 1\n%+v\n", s))
	return hex.EncodeToString(sum[:])
}

// load reads the state of an interrupted run; a state of other settings is left alone
// and reported.
func (r *writerPretraining) load() (map[string][]float32, int, error) {
	if r.spec.StatePath == "" {
		return nil, 0, nil
	}
	fail := func(err error) (map[string][]float32, int, error) {
		return nil, 0, fmt.Errorf("pretraining: state of an interrupted run %s: %w; remove it to begin anew", r.spec.StatePath, err)
	}
	data, err := os.ReadFile(r.spec.StatePath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return fail(err)
	}
	st, err := model.ParseSafeTensors(data)
	if err != nil {
		return fail(err)
	}
	if st.Metadata["fingerprint"] != r.fingerprint() {
		return fail(errors.New("it is of other settings"))
	}
	done, err := strconv.Atoi(st.Metadata["steps"])
	if err != nil || done < 1 || done > r.spec.Steps {
		return fail(fmt.Errorf("steps is %q, want 1..%d", st.Metadata["steps"], r.spec.Steps))
	}
	values := map[string][]float32{}
	for _, p := range r.prog.Params {
		if p.Role != nn.State {
			continue
		}
		t, err := st.Tensor(p.Name)
		if err == nil && len(t.Data) != model.Elements(p.Shape) {
			err = fmt.Errorf("tensor %q has %d values, want %d", p.Name, len(t.Data), model.Elements(p.Shape))
		}
		if err != nil {
			return fail(err)
		}
		values[p.Name] = t.Data
	}
	return values, done, nil
}

// save writes the state after a number of steps if it is time to, or at once.
func (r *writerPretraining) save(steps int, now bool) error {
	if r.spec.StatePath == "" || !now && time.Since(r.last) < savePeriod {
		return nil
	}
	r.last = time.Now()
	st := &model.SafeTensors{Metadata: map[string]string{"fingerprint": r.fingerprint(), "steps": strconv.Itoa(steps)}}
	for _, p := range r.prog.Params {
		if p.Role != nn.State {
			continue
		}
		v, err := nn.Floats(r.state[p.Name], model.Elements(p.Shape))
		if err == nil {
			err = st.Add(p.Name, "F32", p.Shape, v)
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

// finish adds the differences to the start.
func (r *writerPretraining) finish() ([]model.Tensor, error) {
	for _, t := range r.start {
		if r.spec.Config.Frozen(t.Name) {
			continue
		}
		v, err := nn.Floats(r.state[t.Name+model.DeltaSuffix], len(t.Data))
		if err != nil {
			return nil, err
		}
		for i, d := range v {
			t.Data[i] += d
		}
	}
	return r.start, nil
}

package pretraining

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

// WriterSpec describes pretraining of a base that writes text, a T5 or a decoder, or of one
// that hears, which labels recordings meanwhile: full fine-tuning, with the step that devices
// have, of a base that starts at random. Optimizer: AdamW with linear warm-up over a twentieth
// of the steps and linear decay to zero.
type WriterSpec struct {
	Spec
	Answer  int            // tokens that a T5 writes
	Classes int            // labels of recordings; the head that tells them is not the base's
	Start   []model.Tensor // of a base that is trained further; nil: it starts at random
	Source  string         // names what Draw draws from: a state of another source is not gone on from
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

// Layout describes what the step trains and the columns that Draw fills.
func (s WriterSpec) Layout() (*model.Layout, error) { return s.step().Layout() }

func (s WriterSpec) step() nn.StepSpec {
	return nn.StepSpec{Config: s.Config, Method: s.method(), Classes: s.Classes, Spec: training.Spec{Batch: s.Batch, Optimizer: training.AdamW}, Sequence: s.Sequence, Smooth: s.Backend == nil}
}

// Draw fills a batch: of a step from 0, with a generator of its own, done of the steps
// behind it.
type Draw func(step int, rng *rand.Rand, done float64, b task.Batch) error

// MakeWriter trains and packs a base with its tokenizer, nil for one that reads no text.
func MakeWriter(ctx context.Context, s WriterSpec, tokenizer []byte, format model.Format, draw Draw, progress Progress) (*model.Base, error) {
	tensors, err := Writer(ctx, s, draw, progress)
	if err != nil {
		return nil, err
	}
	return model.NewBase(s.Config, tensors, tokenizer, format)
}

// Writer trains and returns the tensors. The same inputs give the same tensors on
// one kind of processor, interrupted or not. It checks ctx between steps.
func Writer(ctx context.Context, s WriterSpec, draw Draw, progress Progress) ([]model.Tensor, error) {
	lay, err := s.Layout()
	if err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	columns, err := task.Columns(lay, s.Sequence)
	if err != nil {
		return nil, err
	}
	prog, err := nn.Compile(s.Backend, "pretrain-writer", s.step().Build)
	if err != nil {
		return nil, err
	}
	w := &writer{spec: s, layout: lay, prog: prog, state: map[string]compute.Buffer{}, frozen: map[string]compute.Buffer{}}
	run := &run{spec: s.Spec, inputs: fingerprint(s.inputs()), value: w.value}
	for _, p := range prog.Params {
		if p.Role == nn.State {
			run.tensors = append(run.tensors, model.TensorSpec{Name: p.Name, Shape: p.Shape})
		}
	}
	done, values, err := run.load()
	if err != nil {
		return nil, err
	}
	if err := w.begin(values); err != nil {
		return nil, err
	}
	batch := task.NewBatch(columns, s.Batch)
	if err := run.steps(ctx, done, func(i int) (float32, error) {
		if err := draw(i, rand.New(rand.NewPCG(s.Seed, uint64(i))), float64(i)/float64(s.Steps), batch); err != nil {
			return 0, err
		}
		inputs := map[string]any{trainer.InputRate: []float32{s.rate(i, max(1, s.Steps/20))}, trainer.InputStep: []float32{float32(i + 1)}}
		for _, v := range batch {
			if inputs[v.Name] = v.I32; v.Type == task.F32 {
				inputs[v.Name] = v.F32
			}
		}
		loss, _, err := prog.Advance(w.state, w.frozen, inputs)
		return loss, err
	}, progress); err != nil {
		return nil, err
	}
	return w.finish()
}

// inputs encodes all that the tensors follow from.
func (s WriterSpec) inputs() []byte {
	s.Backend, s.StatePath, s.Start = nil, "", nil // Source says which start
	return fmt.Appendf(nil, "starling T5 pretraining 2\n%+v\n", s)
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

// writer holds the training state: the differences from the start and their moments.
type writer struct {
	spec   WriterSpec
	layout *model.Layout
	prog   *nn.Program
	start  []model.Tensor
	state  map[string]compute.Buffer
	frozen map[string]compute.Buffer
}

// begin sets the start, and the state to zero or to what an interrupted run left.
func (w *writer) begin(left map[string][]float32) (err error) {
	values := map[string][]float32{}
	given := map[string]model.Tensor{}
	for _, t := range w.spec.Start {
		given[t.Name] = t
	}
	for i, t := range w.spec.Config.BaseTensors() {
		v := slices.Clone(given[t.Name].Data)
		if w.spec.Start == nil {
			v = w.spec.initial(t, i)
		} else if len(v) != model.Elements(t.Shape) {
			return fmt.Errorf("pretraining: the base to start from has %d values of %s, want %d", len(v), t.Name, model.Elements(t.Shape))
		}
		w.start = append(w.start, model.Tensor{Name: t.Name, Shape: t.Shape, Data: v})
		values[t.Name] = v
	}
	head := map[string][]float32{} // with what else does not start at zero
	for _, t := range model.NewAdapter(w.layout, w.spec.Seed).Tensors() {
		head[t.Name] = t.Data
	}
	for _, p := range w.prog.Params {
		if p.Role == nn.Input {
			continue
		}
		to, v := w.frozen, values[p.Name]
		if p.Role == nn.State {
			if to, v = w.state, left[p.Name]; v == nil {
				v = head[p.Name]
			}
			if v == nil {
				v = make([]float32, model.Elements(p.Shape))
			}
		}
		if to[p.Name], err = w.prog.Buffer(p, v); err != nil {
			return err
		}
	}
	return nil
}

// value is a tensor of the state.
func (w *writer) value(t model.TensorSpec) ([]float32, error) {
	return nn.Floats(w.state[t.Name], model.Elements(t.Shape))
}

// finish adds the differences to the start.
func (w *writer) finish() ([]model.Tensor, error) {
	for _, t := range w.start {
		if w.spec.Config.Frozen(t.Name) {
			continue
		}
		v, err := nn.Floats(w.state[t.Name+model.DeltaSuffix], len(t.Data))
		if err != nil {
			return nil, err
		}
		for i, d := range v {
			t.Data[i] += d
		}
	}
	return w.start, nil
}

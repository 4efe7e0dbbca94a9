package pretraining

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

// EncoderSpec describes pretraining by masked-language modelling (Devlin et
// al. 2019): 30% of the tokens are predicted (Wettig et al. 2023 on why more
// than 15); of these 80% are replaced by [MASK], 10% by a random token, 10%
// left. Each is predicted twice: from its own
// state, and from the mean of all states of its row through a linear layer (in
// the spirit of Condenser, Gao and Callan 2021). The second prediction makes
// the pooled state say what a text is about, which is what a classifier on a
// frozen base lives on; rare tokens count more in it than frequent ones.
//
// The softmax runs over the step's own vocabulary, the tokens of its rows and
// as many random others as fit, instead of the whole one. Optimizer: AdamW with
// linear warm-up over a tenth of the steps and linear decay to zero; embeddings
// outside the step's vocabulary rest.
type EncoderSpec struct {
	Spec
	Candidates  int // size of a step's vocabulary
	WeightDecay float64

	// Engine names Backend: a run that was interrupted continues with the one that it began with only.
	Engine string
}

// DefaultEncoder fills in settings that train a base of this configuration well.
func DefaultEncoder(c model.Config) EncoderSpec {
	return EncoderSpec{
		Spec:       Spec{Config: c, Batch: 32, Sequence: c.MaxPositions, Steps: 6000, LearningRate: 3e-3, Seed: 1},
		Candidates: min(1024, c.VocabSize), WeightDecay: 0.01,
	}
}

const (
	maskShare = 0.3
	initStd   = 0.02
	// frequent is the frequency at which a token's weight in the row's
	// prediction has fallen to a half.
	frequent = 1e-3
)

// ErrCorpus says that a corpus cannot be trained on.
var ErrCorpus = errors.New("pretraining: unusable corpus")

// masked is the number of predicted tokens of a step.
func (s EncoderSpec) masked() int { return max(1, int(maskShare*float64(s.Batch*s.Sequence))) }

// step is what the graph of a step depends on.
func (s EncoderSpec) step() nn.MaskedStep {
	return nn.MaskedStep{Config: s.Config, Batch: s.Batch, Sequence: s.Sequence, Predicted: s.masked(), Candidates: s.Candidates, WeightDecay: s.WeightDecay}
}

func (s EncoderSpec) validate() error {
	if err := s.Config.Validate(); err != nil {
		return err
	}
	switch {
	case s.Sequence < 4 || s.Sequence > s.Config.MaxPositions:
		return fmt.Errorf("pretraining: seq is %d, want 4..max_position_embeddings %d", s.Sequence, s.Config.MaxPositions)
	case s.Candidates < 8 || s.Candidates > s.Config.VocabSize:
		return fmt.Errorf("pretraining: candidates is %d, want 8..vocab_size %d", s.Candidates, s.Config.VocabSize)
	}
	return s.check()
}

// moments are what Adam keeps of a tensor beside its values, as suffixes of its name.
var moments = []string{nn.AdamMean, nn.AdamVariance}

// state lists all tensors that are trained, each with its moments.
func (s EncoderSpec) state() (all []model.TensorSpec) {
	for _, t := range s.step().Trained(s.Config.VocabSize) {
		all = append(all, t)
		for _, suffix := range moments {
			all = append(all, model.TensorSpec{Name: t.Name + suffix, Shape: t.Shape})
		}
	}
	return all
}

// local reports whether a tensor, or that of which it is a moment, holds one row a token: its rows move
// between the whole vocabulary and the step's.
func local(name string) bool {
	for _, suffix := range moments {
		name = strings.TrimSuffix(name, suffix)
	}
	return name == nn.WordEmbeddings || name == nn.MaskedBias
}

// initial returns BERT's initialisation over the whole vocabulary: matrices
// N(0, 0.02^2), gains 1, biases 0, the row of padding 0; the row's dense layer
// starts as the identity.
func (s EncoderSpec) initial(rng *rand.Rand) map[string][]float32 {
	values := map[string][]float32{}
	h := s.Config.HiddenSize
	for _, t := range s.step().Trained(s.Config.VocabSize) {
		v := make([]float32, model.Elements(t.Shape))
		for i := range v {
			switch {
			case t.Name == nn.RowDense+".weight":
				if i%(h+1) == 0 {
					v[i] = 1
				}
			case len(t.Shape) == 2:
				v[i] = float32(rng.NormFloat64() * initStd)
			case strings.HasSuffix(t.Name, "weight"):
				v[i] = 1
			}
		}
		if t.Name == nn.WordEmbeddings {
			clear(v[:h])
		}
		values[t.Name] = v
	}
	return values
}

// Rows cuts texts into rows of exactly seq ids: [CLS] ids [SEP] and padding.
// A text longer than a row continues in the next one.
func Rows(tok *tokenizer.WordPiece, texts func(func(string) bool), seq int) [][]int32 {
	var out [][]int32
	for text := range texts {
		ids := tok.Encode(text)
		for len(ids) > 0 {
			n := min(len(ids), seq-2)
			row := make([]int32, seq)
			row[0] = tok.ClsID()
			copy(row[1:], ids[:n])
			row[n+1] = tok.SepID()
			out, ids = append(out, row), ids[n:]
		}
	}
	return out
}

// Encoder trains an encoder on rows of seq token ids and returns its tensors
// without the pooler. The same inputs give the same tensors on one kind of
// processor. It checks ctx between steps.
func Encoder(ctx context.Context, s EncoderSpec, tok *tokenizer.WordPiece, rows [][]int32, progress Progress) ([]model.Tensor, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if tok.PadID() != 0 || tok.VocabSize() > s.Config.VocabSize {
		return nil, fmt.Errorf("%w: tokenizer has pad id %d and %d entries, want 0 and at most vocab_size %d",
			ErrCorpus, tok.PadID(), tok.VocabSize(), s.Config.VocabSize)
	}
	if len(rows) < s.Batch {
		return nil, fmt.Errorf("%w: %d rows of %d tokens, want at least one batch of %d", ErrCorpus, len(rows), s.Sequence, s.Batch)
	}
	for i, r := range rows {
		if err := checkTokens(r, s.Sequence, s.Config.VocabSize); err != nil {
			return nil, fmt.Errorf("%w: row %d: %w", ErrCorpus, i, err)
		}
	}
	prog, err := nn.Compile(s.Backend, "mlm", s.step().Build)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(s.Seed, 0x6d6c6d))
	e := &encoder{spec: s, prog: prog, values: s.initial(rng), state: map[string]compute.Buffer{}}
	inputs, err := s.inputs(tok, rows)
	if err != nil {
		return nil, err
	}
	run := &run{spec: s.Spec, inputs: fingerprint(inputs), tensors: s.state(), value: e.value}
	done, values, err := run.load()
	if err != nil {
		return nil, err
	}
	if err := e.begin(values); err != nil {
		return nil, err
	}
	feed := newMaskFeed(s, tok, rows, rng)
	for range done {
		feed.next()
	}
	if err := run.steps(ctx, done, func(i int) (float32, error) {
		vocab, in := feed.next()
		in[trainer.InputRate] = []float32{s.rate(i, max(1, s.Steps/10))}
		in[trainer.InputStep] = []float32{float32(i + 1)}
		return e.step(vocab, in)
	}, progress); err != nil {
		return nil, err
	}
	return e.finish()
}

// inputs encodes all that the tensors follow from.
func (s EncoderSpec) inputs(tok *tokenizer.WordPiece, rows [][]int32) ([]byte, error) {
	js, err := tok.MarshalJSON()
	if err != nil {
		return nil, err
	}
	s.Backend, s.StatePath = nil, ""
	b := fmt.Appendf(nil, "starling pretraining 2\n%+v\n%d %s\n%d\n", s, len(js), js, len(rows))
	for _, r := range rows {
		for _, id := range r {
			b = binary.LittleEndian.AppendUint32(b, uint32(id))
		}
	}
	return b, nil
}

// encoder holds the training state: tensors with a row a token on the host,
// the others in the backend's buffers.
type encoder struct {
	spec   EncoderSpec
	prog   *nn.Program
	values map[string][]float32 // by tensor; the moments' names have suffixes
	state  map[string]compute.Buffer
}

// begin sets the moments to zero, or everything to what an interrupted run left.
func (e *encoder) begin(left map[string][]float32) error {
	for _, t := range e.spec.step().Trained(e.spec.Config.VocabSize) {
		for _, suffix := range moments {
			e.values[t.Name+suffix] = make([]float32, len(e.values[t.Name]))
		}
	}
	if left != nil {
		e.values = left
	}
	for _, p := range e.prog.Params {
		if p.Role != nn.State || local(p.Name) {
			continue
		}
		b, err := e.prog.Buffer(p, e.values[p.Name])
		if err != nil {
			return err
		}
		e.state[p.Name] = b
	}
	return nil
}

// value is a tensor of the state.
func (e *encoder) value(t model.TensorSpec) ([]float32, error) {
	if local(t.Name) {
		return e.values[t.Name], nil
	}
	return nn.Floats(e.state[t.Name], model.Elements(t.Shape))
}

// step runs one step over the tokens of vocab.
func (e *encoder) step(vocab []int32, in map[string]any) (float32, error) {
	var locals []nn.Param
	for _, p := range e.prog.Params {
		if p.Role != nn.State || !local(p.Name) {
			continue
		}
		locals = append(locals, p)
		width := model.Elements(p.Shape) / len(vocab)
		rows := make([]float32, 0, len(vocab)*width)
		for _, id := range vocab {
			rows = append(rows, e.values[p.Name][int(id)*width:(int(id)+1)*width]...)
		}
		b, err := e.prog.Buffer(p, rows)
		if err != nil {
			return 0, err
		}
		e.state[p.Name] = b
	}
	loss, _, err := e.prog.Advance(e.state, nil, in)
	if err != nil {
		return 0, err
	}
	for _, p := range locals {
		rows, err := nn.Floats(e.state[p.Name], model.Elements(p.Shape))
		if err != nil {
			return 0, err
		}
		width := len(rows) / len(vocab)
		for i, id := range vocab {
			copy(e.values[p.Name][int(id)*width:], rows[i*width:(i+1)*width])
		}
		_ = e.state[p.Name].Finalize()
	}
	return loss, nil
}

// finish returns the encoder's tensors.
func (e *encoder) finish() ([]model.Tensor, error) {
	var out []model.Tensor
	all := e.spec.Config.BaseTensors()
	for _, t := range all[:len(all)-2] {
		v, err := e.value(t)
		if err != nil {
			return nil, err
		}
		out = append(out, model.Tensor{Name: t.Name, Shape: t.Shape, Data: v})
	}
	return out, nil
}

func checkTokens(tokens []int32, want, vocab int) error {
	if len(tokens) != want {
		return fmt.Errorf("pretraining: batch has %d tokens, want %d", len(tokens), want)
	}
	for i, id := range tokens {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("pretraining: token id %d at %d, want 0..%d", id, i, vocab-1)
		}
	}
	return nil
}

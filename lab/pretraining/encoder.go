package pretraining

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/tokenizer"
	"github.com/starling-fl/starling/trainer"
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
	Config       model.Config
	Batch        int // rows of a step
	Sequence     int // tokens of a row
	Steps        int
	Candidates   int     // size of a step's vocabulary
	LearningRate float64 // peak
	WeightDecay  float64
	Seed         uint64 // of initialisation, order and masks; public

	// StatePath is a file that keeps the state of an interrupted run, about every
	// minute and where ctx ends: the next run with the same inputs goes on from
	// there. The caller removes it once the result is safe. Empty keeps nothing.
	StatePath string

	// Backend runs the steps; nil is the Go backend. The compiler's programs
	// are several times faster. Engine names it: a run that was interrupted goes on
	// with the one that it began with only.
	Backend compute.Backend
	Engine  string
}

// DefaultEncoder fills in what a base of this configuration trains well with.
func DefaultEncoder(c model.Config) EncoderSpec {
	return EncoderSpec{
		Config: c, Batch: 32, Sequence: c.MaxPositions, Steps: 6000, Candidates: min(1024, c.VocabSize),
		LearningRate: 3e-3, WeightDecay: 0.01, Seed: 1,
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

// Progress is told after each step of pretraining; a resumed run begins after the
// steps that were done.
type Progress func(step int, loss float32)

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
	case s.Batch < 1 || s.Batch > 4096:
		return fmt.Errorf("pretraining: batch is %d, want 1..4096", s.Batch)
	case s.Steps < 1 || s.Steps > 1e7:
		return fmt.Errorf("pretraining: steps is %d, want 1..1e7", s.Steps)
	case s.Candidates < 8 || s.Candidates > s.Config.VocabSize:
		return fmt.Errorf("pretraining: candidates is %d, want 8..vocab_size %d", s.Candidates, s.Config.VocabSize)
	case !(s.LearningRate > 0 && s.LearningRate < 1):
		return fmt.Errorf("pretraining: learning rate is %v, want within (0, 1)", s.LearningRate)
	}
	return nil
}

// local says whether a tensor holds one row a token: its rows move between the
// whole vocabulary and the step's.
func local(name string) bool { return name == nn.WordEmbeddings || name == nn.MaskedBias }

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
	keep, err := newSaved(s, tok, rows)
	if err != nil {
		return nil, err
	}
	done, values, err := keep.load(s)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(s.Seed, 0x6d6c6d))
	run := &pretraining{spec: s, prog: prog, values: s.initial(rng), state: map[string]compute.Buffer{}}
	if err := run.begin(values); err != nil {
		return nil, err
	}
	feed := newMaskFeed(s, tok, rows, rng)
	for i := range s.Steps {
		vocab, in := feed.next()
		if i < done {
			continue
		}
		if err := ctx.Err(); err != nil {
			if i > done {
				err = errors.Join(err, keep.save(run, i, true))
			}
			return nil, err
		}
		in[trainer.InputRate] = []float32{s.rate(i)}
		in[trainer.InputStep] = []float32{float32(i + 1)}
		loss, err := run.step(vocab, in)
		if err != nil {
			return nil, err
		}
		if progress != nil {
			progress(i+1, loss)
		}
		if err := keep.save(run, i+1, i+1 == s.Steps); err != nil {
			return nil, err
		}
	}
	return run.finish()
}

// rate is the learning rate of step i (from 0).
func (s EncoderSpec) rate(i int) float32 {
	warm := max(1, s.Steps/10)
	up := float64(i+1) / float64(warm)
	down := float64(s.Steps-i) / float64(max(1, s.Steps-warm))
	return float32(s.LearningRate * math.Min(1, math.Min(up, down)))
}

// pretraining holds the training state: tensors with a row a token on the host,
// the others in the backend's buffers.
type pretraining struct {
	spec   EncoderSpec
	prog   *nn.Program
	values map[string][]float32 // by tensor; the moments' names have suffixes
	state  map[string]compute.Buffer
}

// begin sets the moments to zero, or everything to what an interrupted run left.
func (r *pretraining) begin(left map[string][]float32) error {
	for _, t := range r.spec.step().Trained(r.spec.Config.VocabSize) {
		for _, suffix := range []string{nn.AdamMean, nn.AdamVariance} {
			r.values[t.Name+suffix] = make([]float32, len(r.values[t.Name]))
		}
	}
	if left != nil {
		r.values = left
	}
	for _, p := range r.prog.Params {
		if p.Role != nn.State || r.isLocal(p) {
			continue
		}
		b, err := r.prog.Buffer(p, r.values[p.Name])
		if err != nil {
			return err
		}
		r.state[p.Name] = b
	}
	return nil
}

func (r *pretraining) isLocal(p nn.Param) bool {
	return p.Role == nn.State && local(strings.TrimSuffix(strings.TrimSuffix(p.Name, nn.AdamMean), nn.AdamVariance))
}

// step runs one step over the tokens of vocab.
func (r *pretraining) step(vocab []int32, in map[string]any) (float32, error) {
	var locals []nn.Param
	for _, p := range r.prog.Params {
		if !r.isLocal(p) {
			continue
		}
		locals = append(locals, p)
		width := model.Elements(p.Shape) / len(vocab)
		rows := make([]float32, 0, len(vocab)*width)
		for _, id := range vocab {
			rows = append(rows, r.values[p.Name][int(id)*width:(int(id)+1)*width]...)
		}
		b, err := r.prog.Buffer(p, rows)
		if err != nil {
			return 0, err
		}
		r.state[p.Name] = b
	}
	loss, _, err := r.prog.Advance(r.state, nil, in)
	if err != nil {
		return 0, err
	}
	for _, p := range locals {
		rows, err := nn.Floats(r.state[p.Name], model.Elements(p.Shape))
		if err != nil {
			return 0, err
		}
		width := len(rows) / len(vocab)
		for i, id := range vocab {
			copy(r.values[p.Name][int(id)*width:], rows[i*width:(i+1)*width])
		}
		_ = r.state[p.Name].Finalize()
	}
	return loss, nil
}

// finish returns the encoder's tensors.
func (r *pretraining) finish() ([]model.Tensor, error) {
	var out []model.Tensor
	all := r.spec.Config.BaseTensors()
	for _, t := range all[:len(all)-2] {
		v := r.values[t.Name]
		if !local(t.Name) {
			var err error
			if v, err = nn.Floats(r.state[t.Name], model.Elements(t.Shape)); err != nil {
				return nil, err
			}
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

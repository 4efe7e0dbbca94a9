package nn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/tokenizer"
)

// PretrainSpec describes pretraining by masked-language modelling (Devlin et
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
type PretrainSpec struct {
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

// DefaultPretrain fills in what a base of this configuration trains well with.
func DefaultPretrain(c model.Config) PretrainSpec {
	return PretrainSpec{
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

	wordsName  = "embeddings.word_embeddings.weight"
	mlmBias    = "cls.predictions.bias"
	rowDense   = "row.dense" // of the prediction from the row's mean
	targetName = "targets"
	placeName  = "places"
	rowName    = "rows"
	rowWeights = "row_weights"
	adamM      = ".adam_m"
	adamV      = ".adam_v"
)

// ErrCorpus says that a corpus cannot be trained on.
var ErrCorpus = errors.New("nn: unusable corpus")

// Progress is told after each step of pretraining; a resumed run begins after the
// steps that were done.
type Progress func(step int, loss float32)

// masked is the number of predicted tokens of a step.
func (s PretrainSpec) masked() int { return max(1, int(maskShare*float64(s.Batch*s.Sequence))) }

func (s PretrainSpec) validate() error {
	if err := s.Config.Validate(); err != nil {
		return err
	}
	switch {
	case s.Sequence < 4 || s.Sequence > s.Config.MaxPositions:
		return fmt.Errorf("nn: pretraining seq is %d, want 4..max_position_embeddings %d", s.Sequence, s.Config.MaxPositions)
	case s.Batch < 1 || s.Batch > 4096:
		return fmt.Errorf("nn: pretraining batch is %d, want 1..4096", s.Batch)
	case s.Steps < 1 || s.Steps > 1e7:
		return fmt.Errorf("nn: pretraining steps is %d, want 1..1e7", s.Steps)
	case s.Candidates < 8 || s.Candidates > s.Config.VocabSize:
		return fmt.Errorf("nn: pretraining candidates is %d, want 8..vocab_size %d", s.Candidates, s.Config.VocabSize)
	case !(s.LearningRate > 0 && s.LearningRate < 1):
		return fmt.Errorf("nn: pretraining learning rate is %v, want within (0, 1)", s.LearningRate)
	}
	return nil
}

// trained lists the tensors of a step that change, over the step's vocabulary
// of n tokens: all but the pooler, and what only pretraining needs.
func (s PretrainSpec) trained(n int) []model.TensorSpec {
	c := s.Config
	c.VocabSize = n
	all := c.BaseTensors()
	return append(all[:len(all)-2:len(all)-2],
		model.TensorSpec{Name: mlmBias, Shape: []int{n}},
		model.TensorSpec{Name: rowDense + ".weight", Shape: []int{c.HiddenSize, c.HiddenSize}},
		model.TensorSpec{Name: rowDense + ".bias", Shape: []int{c.HiddenSize}})
}

// local says whether a tensor holds one row a token: its rows move between the
// whole vocabulary and the step's.
func local(name string) bool { return name == wordsName || name == mlmBias }

// build writes the step. Token ids are indices into the step's vocabulary,
// whose first is padding.
func (s PretrainSpec) build(g *graph.Graph) ([]Param, []Output, error) {
	p := newParams(g)
	k := s.masked()
	tokens := p.add(task.Tokens, Input, dtypes.Int32, s.Batch, s.Sequence)
	places := p.add(placeName, Input, dtypes.Int32, k)
	rowOf := p.add(rowName, Input, dtypes.Int32, k)
	targets := p.add(targetName, Input, dtypes.Int32, k)
	weights := p.add(task.Weights, Input, dtypes.Float32, k)
	rowW := p.add(rowWeights, Input, dtypes.Float32, k)
	lr := p.add(LearningRateName, Input, dtypes.Float32)
	step := p.add(StepName, Input, dtypes.Float32)

	specs := s.trained(s.Candidates)
	vars := make([]*graph.Node, len(specs))
	for i, t := range specs {
		vars[i] = p.add(t.Name, State, dtypes.Float32, t.Shape...)
	}
	m := make([]*graph.Node, len(specs))
	v := make([]*graph.Node, len(specs))
	for i, t := range specs {
		m[i] = p.add(t.Name+adamM, State, dtypes.Float32, t.Shape...)
		v[i] = p.add(t.Name+adamV, State, dtypes.Float32, t.Shape...)
	}
	cfg := s.Config
	cfg.VocabSize = s.Candidates
	e := encoder{cfg: cfg, params: p, elementary: elementary{smooth: true}}
	x, keep := e.hidden(tokens)
	words, bias := p.byName[wordsName], p.byName[mlmBias]
	predict := func(state, at, w *graph.Node) (loss, surrogate *graph.Node) {
		picked := graph.Gather(state, graph.Reshape(at, k, 1))
		return e.vocabularyLoss(picked, words, bias, targets, w)
	}
	own, ownGrad := predict(x, places, weights)
	_, rowGrad := predict(e.dense(e.pooled(x, keep), rowDense, cfg.HiddenSize), rowOf, rowW)
	grads := graph.Gradient(graph.Add(ownGrad, rowGrad), vars...)
	outputs := []Output{{Name: LossName, Node: own}}
	for i, t := range specs {
		dir, newM, newV := adamDirection(grads[i], step, m[i], v[i])
		if s.WeightDecay > 0 && len(t.Shape) == 2 {
			dir = graph.Add(dir, graph.MulScalar(vars[i], s.WeightDecay))
		}
		outputs = append(outputs,
			Output{State: t.Name, Node: graph.Sub(vars[i], scaleBy(dir, lr))},
			Output{State: t.Name + adamM, Node: newM},
			Output{State: t.Name + adamV, Node: newV})
	}
	return p.list, outputs, nil
}

// initial returns BERT's initialisation over the whole vocabulary: matrices
// N(0, 0.02^2), gains 1, biases 0, the row of padding 0; the row's dense layer
// starts as the identity.
func (s PretrainSpec) initial(rng *rand.Rand) map[string][]float32 {
	values := map[string][]float32{}
	h := s.Config.HiddenSize
	for _, t := range s.trained(s.Config.VocabSize) {
		v := make([]float32, model.Elements(t.Shape))
		for i := range v {
			switch {
			case t.Name == rowDense+".weight":
				if i%(h+1) == 0 {
					v[i] = 1
				}
			case len(t.Shape) == 2:
				v[i] = float32(rng.NormFloat64() * initStd)
			case strings.HasSuffix(t.Name, "weight"):
				v[i] = 1
			}
		}
		if t.Name == wordsName {
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

// Pretrain trains an encoder on rows of seq token ids and returns its tensors
// without the pooler. The same inputs give the same tensors on one kind of
// processor. It checks ctx between steps.
func Pretrain(ctx context.Context, s PretrainSpec, tok *tokenizer.WordPiece, rows [][]int32, progress Progress) ([]model.Tensor, error) {
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
	prog, err := compile(s.Backend, "mlm", s.build)
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
		in[LearningRateName] = []float32{s.rate(i)}
		in[StepName] = []float32{float32(i + 1)}
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
func (s PretrainSpec) rate(i int) float32 {
	warm := max(1, s.Steps/10)
	up := float64(i+1) / float64(warm)
	down := float64(s.Steps-i) / float64(max(1, s.Steps-warm))
	return float32(s.LearningRate * math.Min(1, math.Min(up, down)))
}

// pretraining holds the training state: tensors with a row a token on the host,
// the others in the backend's buffers.
type pretraining struct {
	spec   PretrainSpec
	prog   *program
	values map[string][]float32 // by tensor; the moments' names have suffixes
	state  map[string]compute.Buffer
}

// begin sets the moments to zero, or everything to what an interrupted run left.
func (r *pretraining) begin(left map[string][]float32) error {
	for _, t := range r.spec.trained(r.spec.Config.VocabSize) {
		for _, suffix := range []string{adamM, adamV} {
			r.values[t.Name+suffix] = make([]float32, len(r.values[t.Name]))
		}
	}
	if left != nil {
		r.values = left
	}
	for _, p := range r.prog.params {
		if p.Role != State || r.isLocal(p) {
			continue
		}
		b, err := r.prog.buffer(p, r.values[p.Name])
		if err != nil {
			return err
		}
		r.state[p.Name] = b
	}
	return nil
}

func (r *pretraining) isLocal(p Param) bool {
	return p.Role == State && local(strings.TrimSuffix(strings.TrimSuffix(p.Name, adamM), adamV))
}

// step runs one step over the tokens of vocab.
func (r *pretraining) step(vocab []int32, in map[string]any) (float32, error) {
	var locals []Param
	for _, p := range r.prog.params {
		if !r.isLocal(p) {
			continue
		}
		locals = append(locals, p)
		width := model.Elements(p.Shape) / len(vocab)
		rows := make([]float32, 0, len(vocab)*width)
		for _, id := range vocab {
			rows = append(rows, r.values[p.Name][int(id)*width:(int(id)+1)*width]...)
		}
		b, err := r.prog.buffer(p, rows)
		if err != nil {
			return 0, err
		}
		r.state[p.Name] = b
	}
	loss, _, err := r.prog.advance(r.state, nil, in)
	if err != nil {
		return 0, err
	}
	for _, p := range locals {
		rows, err := floats(r.state[p.Name], model.Elements(p.Shape))
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
			if v, err = floats(r.state[t.Name], model.Elements(t.Shape)); err != nil {
				return nil, err
			}
		}
		out = append(out, model.Tensor{Name: t.Name, Shape: t.Shape, Data: v})
	}
	return out, nil
}

package nn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/tokenizer"
)

// PretrainSpec describes masked-language-model pretraining (Devlin et al.
// 2019): 15% of the tokens are predicted; of these 80% are replaced by [MASK],
// 10% by a random token, 10% left. Optimizer: AdamW with linear warm-up over a
// tenth of the steps and linear decay to zero.
type PretrainSpec struct {
	Config       model.Config
	Batch        int // rows of a step
	Seq          int // tokens of a row
	Steps        int
	LearningRate float64 // peak
	WeightDecay  float64
	Seed         uint64 // of initialisation, order and masks; public
}

// DefaultPretrain fills in what a base of this configuration trains well with.
func DefaultPretrain(c model.Config) PretrainSpec {
	return PretrainSpec{
		Config: c, Batch: 32, Seq: c.MaxPositions, Steps: 2000,
		LearningRate: 2e-3, WeightDecay: 0.01, Seed: 1,
	}
}

const (
	maskShare  = 0.15
	initStd    = 0.02
	mlmBias    = "cls.predictions.bias"
	targetName = "targets"
	placeName  = "places"
)

// ErrCorpus says that a corpus cannot be trained on.
var ErrCorpus = errors.New("nn: unusable corpus")

// Progress is told after each step of pretraining.
type Progress func(step int, loss float32)

// masked is the number of predicted tokens of a step.
func (s PretrainSpec) masked() int { return max(1, int(maskShare*float64(s.Batch*s.Seq))) }

func (s PretrainSpec) validate() error {
	if err := s.Config.Validate(); err != nil {
		return err
	}
	switch {
	case s.Seq < 4 || s.Seq > s.Config.MaxPositions:
		return fmt.Errorf("nn: pretraining seq is %d, want 4..max_position_embeddings %d", s.Seq, s.Config.MaxPositions)
	case s.Batch < 1 || s.Batch > 4096:
		return fmt.Errorf("nn: pretraining batch is %d, want 1..4096", s.Batch)
	case s.Steps < 1 || s.Steps > 1e7:
		return fmt.Errorf("nn: pretraining steps is %d, want 1..1e7", s.Steps)
	case !(s.LearningRate > 0 && s.LearningRate < 1):
		return fmt.Errorf("nn: pretraining learning rate is %v, want within (0, 1)", s.LearningRate)
	}
	return nil
}

// build writes the MLM step: every tensor but the pooler is trained; the
// output layer is the word embedding, transposed, plus a bias.
func (s PretrainSpec) build(g *graph.Graph) ([]Param, []Output, error) {
	p := newParams(g)
	k := s.masked()
	tokens := p.add(TokensName, Input, dtypes.Int32, s.Batch, s.Seq)
	places := p.add(placeName, Input, dtypes.Int32, k)
	targets := p.add(targetName, Input, dtypes.Int32, k)
	weights := p.add(WeightsName, Input, dtypes.Float32, k)
	lr := p.add(LearningRateName, Input, dtypes.Float32)
	step := p.add(StepName, Input, dtypes.Float32)

	specs := s.trained()
	vars := make([]*graph.Node, len(specs))
	for i, t := range specs {
		vars[i] = p.add(t.Name, State, dtypes.Float32, t.Shape...)
	}
	m := make([]*graph.Node, len(specs))
	v := make([]*graph.Node, len(specs))
	for i, t := range specs {
		m[i] = p.add(t.Name+".adam_m", State, dtypes.Float32, t.Shape...)
		v[i] = p.add(t.Name+".adam_v", State, dtypes.Float32, t.Shape...)
	}
	x, _ := encoder{cfg: s.Config, params: p}.hidden(tokens)
	picked := graph.Gather(x, graph.Reshape(places, k, 1))
	logits := linear(picked, p.byName["embeddings.word_embeddings.weight"], p.byName[mlmBias])
	loss := crossEntropy(logits, targets, weights)
	grads := graph.Gradient(loss, vars...)
	outputs := []Output{{Name: LossName, Node: loss}}
	for i, t := range specs {
		dir, newM, newV := adamDirection(grads[i], step, m[i], v[i])
		if s.WeightDecay > 0 && len(t.Shape) == 2 {
			dir = graph.Add(dir, graph.MulScalar(vars[i], s.WeightDecay))
		}
		outputs = append(outputs,
			Output{State: t.Name, Node: graph.Sub(vars[i], scaleBy(dir, lr))},
			Output{State: t.Name + ".adam_m", Node: newM},
			Output{State: t.Name + ".adam_v", Node: newV})
	}
	return p.list, outputs, nil
}

// trained lists the tensors that pretraining changes.
func (s PretrainSpec) trained() []model.TensorSpec {
	all := s.Config.BaseTensors()
	return append(all[:len(all)-2:len(all)-2], // without the pooler
		model.TensorSpec{Name: mlmBias, Shape: []int{s.Config.VocabSize}})
}

// initial returns BERT's initialisation: matrices N(0, 0.02^2), gains 1,
// biases 0; the row of [PAD] is zero.
func (s PretrainSpec) initial(rng *rand.Rand) map[string][]float32 {
	values := map[string][]float32{}
	for _, t := range s.trained() {
		v := make([]float32, model.Elements(t.Shape))
		for i := range v {
			switch {
			case len(t.Shape) == 2:
				v[i] = float32(rng.NormFloat64() * initStd)
			case t.Name[len(t.Name)-6:] == "weight":
				v[i] = 1
			}
		}
		if t.Name == "embeddings.word_embeddings.weight" {
			clear(v[:s.Config.HiddenSize])
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

// Pretrain trains an encoder on rows of seq token ids and returns its tensors,
// the pooler fitted to the same rows included. The same inputs give the same
// tensors. It checks ctx between steps.
func Pretrain(ctx context.Context, s PretrainSpec, tok *tokenizer.WordPiece, rows [][]int32, progress Progress) ([]model.Tensor, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if tok.PadID() != 0 || tok.VocabSize() > s.Config.VocabSize {
		return nil, fmt.Errorf("%w: tokenizer has pad id %d and %d entries, want 0 and at most vocab_size %d",
			ErrCorpus, tok.PadID(), tok.VocabSize(), s.Config.VocabSize)
	}
	if len(rows) < s.Batch {
		return nil, fmt.Errorf("%w: %d rows of %d tokens, want at least one batch of %d", ErrCorpus, len(rows), s.Seq, s.Batch)
	}
	for i, r := range rows {
		if err := checkTokens(r, s.Seq, s.Config.VocabSize); err != nil {
			return nil, fmt.Errorf("%w: row %d: %w", ErrCorpus, i, err)
		}
	}
	prog, err := compile("mlm", s.build)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(s.Seed, 0x6d6c6d))
	state := map[string]compute.Buffer{}
	start := s.initial(rng)
	for _, p := range prog.params {
		if p.Role == State {
			v := start[p.Name]
			if v == nil {
				v = make([]float32, model.Elements(p.Shape))
			}
			if state[p.Name], err = prog.buffer(p, v); err != nil {
				return nil, err
			}
		}
	}
	feed := &maskFeed{spec: s, tok: tok, rows: rows, rng: rng}
	for i := range s.Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		in := feed.next()
		in[LearningRateName] = []float32{s.rate(i)}
		in[StepName] = []float32{float32(i + 1)}
		loss, err := prog.advance(state, nil, in)
		if err != nil {
			return nil, err
		}
		if progress != nil {
			progress(i+1, loss)
		}
	}
	var tensors []model.Tensor
	for _, t := range s.trained() {
		if t.Name == mlmBias {
			continue
		}
		v, err := floats(state[t.Name], model.Elements(t.Shape))
		if err != nil {
			return nil, err
		}
		tensors = append(tensors, model.Tensor{Name: t.Name, Shape: t.Shape, Data: v})
	}
	return tensors, nil
}

// rate is the learning rate of step i (from 0).
func (s PretrainSpec) rate(i int) float32 {
	warm := max(1, s.Steps/10)
	up := float64(i+1) / float64(warm)
	down := float64(s.Steps-i) / float64(max(1, s.Steps-warm))
	return float32(s.LearningRate * math.Min(1, math.Min(up, down)))
}

// maskFeed draws batches and masks them.
type maskFeed struct {
	spec  PretrainSpec
	tok   *tokenizer.WordPiece
	rows  [][]int32
	rng   *rand.Rand
	order []int
}

func (f *maskFeed) next() map[string]any {
	s := f.spec
	tokens := make([]int32, 0, s.Batch*s.Seq)
	for range s.Batch {
		if len(f.order) == 0 {
			f.order = f.rng.Perm(len(f.rows))
		}
		tokens = append(tokens, f.rows[f.order[0]]...)
		f.order = f.order[1:]
	}
	var open []int // places that may be masked
	for i, id := range tokens {
		if id != f.tok.PadID() && id != f.tok.ClsID() && id != f.tok.SepID() {
			open = append(open, i)
		}
	}
	f.rng.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	k := s.masked()
	places, targets, weights := make([]int32, k), make([]int32, k), make([]float32, k)
	for i, at := range open[:min(k, max(1, int(maskShare*float64(len(open)))), len(open))] {
		places[i], targets[i], weights[i] = int32(at), tokens[at], 1
		switch r := f.rng.Float64(); {
		case r < 0.8:
			tokens[at] = f.tok.MaskID()
		case r < 0.9:
			tokens[at] = int32(f.rng.IntN(f.tok.VocabSize()))
		}
	}
	return map[string]any{TokensName: tokens, placeName: places, targetName: targets, WeightsName: weights}
}

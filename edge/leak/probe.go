package leak

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// probe makes updates and knows what is in them.
type probe struct {
	Settings
	Options
	task     task.Task
	scheme   quant.Scheme
	start    []float32
	examples int            // distinct ones of an update
	frame    map[int32]bool // tokens that any text has
	empty    []int32        // a text of no others

	step          time.Duration // the shortest that one of a training took so far
	unknown       int32         // the token of what the vocabulary lacks; -1: there is none
	read, lacking int           // tokens of the texts so far, and how many of them it was
}

func newProbe(s Settings, o Options) (*probe, error) {
	p := &probe{Settings: s, Options: o, frame: map[int32]bool{}, unknown: -1}
	var err error
	if p.task, err = task.New(s.Base, s.Layout, s.Sequence); err != nil {
		return nil, err
	}
	if p.scheme, err = quant.Lookup(s.Uplink); err != nil {
		return nil, err
	}
	most := s.Steps * s.Batch
	if most < 1 {
		return nil, fmt.Errorf("leak: %d steps of %d examples, want one or more of each", s.Steps, s.Batch)
	}
	p.examples = most
	if s.Examples > 0 {
		p.examples = min(s.Examples, most)
	}
	if o.Data != nil { // as many again are not in it
		p.examples = min(p.examples, len(o.Data.Examples)/2)
	}
	if p.examples < 1 {
		return nil, fmt.Errorf("leak: the data has %d examples, want 2 or more: one that is in an update and one that is not", len(o.Data.Examples))
	}
	if s.Layout.Method.Task == model.TaskTranscribe { // of characters, the blank fills labels up
		p.frame[int32(s.Base.Config.PadTokenID)] = true
	}
	if !s.Base.Config.Textless() {
		tok, err := task.TokenizerOf(s.Base)
		if err != nil {
			return nil, err
		}
		p.unknown = tok.UnknownID()
		p.empty = tok.EncodeFixed("", s.Sequence)
		for _, id := range p.empty {
			if id >= 0 { // padding of a base that needs none
				p.frame[id] = true
			}
		}
		for _, id := range s.Base.Config.Frames() {
			p.frame[id] = true
		}
	}
	p.start = p.later()
	return p, nil
}

// source is a random one for a purpose in a trial.
func (p *probe) source(what string, trial int) *rand.ChaCha8 {
	return rand.NewChaCha8(p.derive(what, trial))
}

func (p *probe) derive(what string, trial int) [32]byte {
	return sha256.Sum256(binary.LittleEndian.AppendUint64(append(slices.Clone(p.Seed), what...), uint64(trial)))
}

// Deviations of the start's values, over a root of a map's columns in the head: with more
// the gradients that come back are larger beside the head's own, and more of a text is
// seen, up to about here (measured with LoRA on the default base).
const (
	headScale = 3
	factorB   = 1
)

// later is an adapter as a coordinator may have a round begin with: none of the maps that
// gradients come back through is zero. A fresh one has a head of zeros, through which
// nothing of the first step's reaches the layers before it, and factors B of zeros, through
// which nothing reaches A.
func (p *probe) later() []float32 {
	rng := rand.New(p.source("start", 0))
	start := model.NewAdapter(p.Layout, rng.Uint64()).Slice(p.Rank)
	for _, s := range p.Layout.Spans(p.Rank) {
		values := start[s.Offset : s.Offset+s.Len]
		if len(s.Shape) != 2 || s.Start != model.StartZero || s.Kind == model.KindDelta {
			continue
		}
		for i := range values {
			if s.Kind == model.KindHead {
				values[i] = float32(headScale * rng.NormFloat64() / math.Sqrt(float64(s.Shape[1])))
			} else {
				values[i] = float32(factorB * rng.NormFloat64())
			}
		}
	}
	return start
}

// steps is how many a training on so many examples takes.
func (p *probe) steps(examples int) int {
	if passes := (examples + p.Batch - 1) / p.Batch; p.Epochs > 0 {
		return min(p.Steps, p.Epochs*passes)
	}
	return p.Steps
}

// recorder remembers what the trainer came to, and how long a step took.
type recorder struct {
	edge.Trainer
	delta []float32
	step  time.Duration
}

func (r *recorder) Train(ctx context.Context, t edge.Task) ([]float32, error) {
	began := time.Now()
	delta, err := r.Trainer.Train(ctx, t)
	r.delta, r.step = slices.Clone(delta), time.Since(began)/time.Duration(max(1, t.Steps))
	return delta, err
}

// replay comes to the same again.
type replay []float32

func (r replay) Train(context.Context, edge.Task) ([]float32, error) { return slices.Clone(r), nil }
func (r replay) Close() error                                        { return nil }

// contribution is a device's part in a round on a lattice.
func (p *probe) contribution(l *quant.Lattice, seed [32]byte) edge.Contribution {
	return edge.Contribution{
		Round: 1, Lattice: l, Work: p.Settings.Work, Seed: seed[:],
		Task: edge.Task{
			Base:   func(context.Context) (*model.Base, error) { return p.Base, nil },
			Layout: p.Layout, Rank: p.Rank, Start: p.start,
			Spec: p.Spec, Sequence: p.Sequence, Program: p.Program, MostMemory: p.MostMemory,
		},
	}
}

// trains is what training on examples comes to, before anything is done to it.
func (p *probe) trains(ctx context.Context, examples []dataset.Example, seed [32]byte) ([]float32, error) {
	data, err := edge.NewData(&dataset.Set{Examples: examples}, p.task, 0, 0)
	if err != nil {
		return nil, err
	}
	l, err := quant.NewLattice(p.scheme, len(p.start), 1, [32]byte{})
	if err != nil {
		return nil, err
	}
	c := p.contribution(l, seed)
	var failed error
	c.Failed = func(err error) { failed = err }
	r := &recorder{Trainer: p.Trainer}
	if _, err := edge.Contribute(ctx, r, data, c); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, fmt.Errorf("%w: training on made-up examples: %w", ErrNotTried, failed)
	}
	if p.step == 0 || r.step < p.step { // the first one loads the program, too
		p.step = r.step
	}
	return r.delta, nil
}

// sends is what a coordinator reads of an update that stands alone in its sum: clipped,
// rounded and with the device's own noise, as the device would send it. The clip norm is
// the one that shows most: the update's own, beside which rounding and noise are least.
func (p *probe) sends(ctx context.Context, delta []float32, examples []dataset.Example, seed [32]byte) ([]float32, error) {
	length := norm(delta)
	if length == 0 {
		return delta, nil
	}
	l, err := quant.NewLattice(p.scheme, len(delta), length, seed)
	if err != nil {
		return nil, err
	}
	c := p.contribution(l, seed)
	if p.Settings.Own > 0 {
		if c.Own, err = (dp.OwnNoise{Multiplier: p.Settings.Own}).Variance(l.B2()); err != nil {
			return nil, err
		}
	}
	data, err := edge.NewData(&dataset.Set{Examples: examples}, p.task, 0, 0)
	if err != nil {
		return nil, err
	}
	symbols, err := edge.Contribute(ctx, replay(delta), data, c)
	if err != nil {
		return nil, err
	}
	sum := make([]int64, len(symbols))
	for i, x := range symbols {
		sum[i] = int64(x)
	}
	return l.DecodeMean(sum, 1)
}

// facts are what an update could show.
type facts struct {
	tokens map[int32]bool // that its texts have
	labels []int          // how often each label is in them; nil: the task has none
}

func (p *probe) facts(examples []dataset.Example) (facts, error) {
	f := facts{tokens: map[int32]bool{}}
	b, err := task.EncodeAll(p.task, examples)
	if err != nil {
		return f, err
	}
	for _, v := range b {
		if v.Type != task.I32 || v.Limit == 0 || v.Limit != p.Base.Config.VocabSize {
			continue
		}
		for _, id := range v.I32 {
			if p.frame[id] {
				continue
			}
			f.tokens[id] = true
			if p.read++; id == p.unknown {
				p.lacking++
			}
		}
	}
	if p.Layout.Classes > 0 {
		f.labels = make([]int, p.Layout.Classes)
		weights := b.Float32(task.Weights)
		for i, label := range b.Int32(task.Labels) {
			if weights[i] > 0 {
				f.labels[label]++
			}
		}
	}
	return f, nil
}

// update is one that was sent, and what is in it.
type update struct {
	values  []float32 // as the coordinator reads them
	level   float64   // variance of rounding and noise in each, which follows from the plan
	in, out facts     // of its texts, and of texts that are not in it
	trial   int
}

// try makes an update and has every attack read it.
func (p *probe) try(ctx context.Context, trial int, attacks []*attack) error {
	examples, others, err := p.texts(trial)
	if err != nil {
		return err
	}
	u := update{trial: trial}
	if u.in, err = p.facts(examples); err != nil {
		return err
	}
	if u.out, err = p.facts(others); err != nil {
		return err
	}
	seed := p.derive("round", trial)
	delta, err := p.trains(ctx, examples, seed)
	if err != nil {
		return err
	}
	if u.values, err = p.sends(ctx, delta, examples, seed); err != nil {
		return err
	}
	for i, x := range u.values {
		d := float64(x - delta[i])
		u.level += d * d / float64(len(delta))
	}
	for i := range attacks {
		if err := attacks[i].play(ctx, &u); err != nil {
			return err
		}
	}
	return nil
}

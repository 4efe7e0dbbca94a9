package bandwidth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm/program"
)

// Subject is the measured payload: a model, a rank, and one update for each device.
type Subject struct {
	base    *model.Base
	layout  *model.Layout
	rank    int
	shown   int // the rank that rows name
	labels  []string
	updates [][]float32
}

// Params is the number of values in an update.
func (s *Subject) Params() int { return s.layout.Size(s.rank) }

// StandIn is a small model whose adapter with head has exactly size.Params
// values: devices check a plan against a model's layout, so a number that is
// given needs a model that has it. Its weights are zeros and nothing is trained;
// the updates are drawn by drawUpdates. It looks for width h, layers n, rank
// b <= h and classes c with 4*n*h*b + (h+1)*c = params and the fewest weights.
func StandIn(size Size, devices int) (*Subject, error) {
	params := size.Params
	h, n, b, c := standInShape(params)
	if h == 0 {
		return nil, &SettingError{"params", fmt.Errorf("%d: no adapter with head has that many values", params)}
	}
	tok, err := tokenizer.Train(slices.Values([]string{"a model that stands in for one of the same size"}), 64)
	if err != nil {
		return nil, err
	}
	text, err := tok.MarshalJSON()
	if err != nil {
		return nil, err
	}
	config := model.BERT(tok.VocabSize(), h, n, 1, 16)
	var tensors []model.Tensor
	for _, s := range config.BaseTensors() {
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: make([]float32, model.Elements(s.Shape))})
	}
	base, err := model.NewBase(config, tensors, text, model.NF4)
	if err != nil {
		return nil, err
	}
	layout, err := model.NewLayout(config, model.Method{RMax: b, Alpha: standInAlpha}, c)
	if err != nil {
		return nil, err
	}
	s := &Subject{base: base, layout: layout, rank: b, shown: size.Rank, updates: drawUpdates(params, devices)}
	for i := range c {
		s.labels = append(s.labels, fmt.Sprint("class ", i))
	}
	return s, nil
}

// standInShape searches few classes first: labels travel in the job.
func standInShape(params int) (h, n, b, c int) {
	for _, most := range []int{16, 64, 4000} { // classes; a job has at most 4096 labels
		for width := 8; width <= 2048; width += 8 {
			for layers := 1; layers <= 16; layers++ {
				if h != 0 && layers*width*width >= n*h*h {
					break
				}
				for classes := 2; classes <= most && (width+1)*classes < params; classes++ {
					rest := params - (width+1)*classes
					if rest%(4*layers*width) == 0 && rest/(4*layers*width) <= width {
						h, n, b, c = width, layers, rest/(4*layers*width), classes
						break
					}
				}
			}
		}
		if h != 0 {
			break
		}
	}
	return h, n, b, c
}

const standInAlpha = 1

// drawUpdates draws updates of norm 1 that share a direction, as devices that
// train on related data do (their mean has norm 0.6), with scales that differ
// from one run of 512 values to the next by a factor of e, as those of
// matrices do. Seeded: two runs measure the same vectors.
func drawUpdates(params, devices int) [][]float32 {
	const shared = 0.6
	rnd := rand.New(rand.NewPCG(1, uint64(params)))
	draw := func() []float32 {
		x := make([]float32, params)
		var scale, norm float64
		for i := range x {
			if i%512 == 0 {
				scale = math.Exp(rnd.NormFloat64())
			}
			x[i] = float32(scale * rnd.NormFloat64())
			norm += float64(x[i]) * float64(x[i])
		}
		for i := range x {
			x[i] /= float32(math.Sqrt(norm))
		}
		return x
	}
	common := draw()
	updates := make([][]float32, devices)
	for k := range updates {
		u := draw()
		for i := range u {
			u[i] = float32(shared*float64(common[i]) + math.Sqrt(1-shared*shared)*float64(u[i]))
		}
		updates[k] = u
	}
	return updates
}

// Trained trains every client for a round from the adapter after one round, so that both factors of the adapter
// move, and takes the change as its update.
func Trained(ctx context.Context, base *model.Base, labels []string, clients []*dataset.Set, rank int) (s *Subject, err error) {
	lora := model.Method{RMax: rank, Alpha: trainAlpha}
	layout, err := model.NewLayout(base.Config, lora, len(labels))
	if err != nil {
		return nil, err
	}
	spec := training.Spec{Steps: trainSteps, Optimizer: training.SGD, LearningRate: trainRate, Batch: trainBatch}
	j := job.Default()
	j.Labels, j.Training = labels, spec
	j.Adapter.RankMin, j.Adapter.RankMax, j.Adapter.Alpha, j.Adapter.Sequence = rank, rank, trainAlpha, trainSequence
	step, err := program.Step(program.Spec{Job: j, Base: base, Rank: rank, Host: program.Hosts[0]})
	if err != nil {
		return nil, err
	}
	programs := edge.NewProgramTrainer(1)
	defer func() { err = errors.Join(err, programs.Close()) }()
	classify, err := task.New(base, layout, trainSequence)
	if err != nil {
		return nil, err
	}
	train := func(start []float32, set *dataset.Set) ([]float32, error) {
		local, err := batches(set, classify)
		if err != nil {
			return nil, err
		}
		return programs.Train(ctx, trainer.Task{
			Base:   func(context.Context) (*model.Base, error) { return base, nil },
			Layout: layout, Rank: rank, Start: start, Columns: classify.Columns(), Batches: trainer.Batches(local...),
			Spec: spec, Sequence: trainSequence, Program: step,
		})
	}
	start := model.NewAdapter(layout, 1).Slice(rank)
	const warm = 4 // clients whose mean is the first round
	for _, set := range clients[:min(warm, len(clients))] {
		delta, err := train(start, set)
		if err != nil {
			return nil, err
		}
		for i, v := range delta {
			start[i] += v / warm
		}
	}
	s = &Subject{base: base, layout: layout, rank: rank, shown: rank, labels: labels}
	for _, set := range clients {
		delta, err := train(start, set)
		if err != nil {
			return nil, err
		}
		s.updates = append(s.updates, delta)
	}
	return s, nil
}

// Local training of one round, as job.Default has it.
const (
	trainAlpha    = 8
	trainBatch    = 8
	trainSteps    = 4
	trainSequence = 32
	trainRate     = 0.1
)

// batches takes a client's first examples, again from the start where they run out.
func batches(set *dataset.Set, t task.Task) ([]trainer.Batch, error) {
	out := make([]trainer.Batch, trainSteps)
	for k := range out {
		out[k] = task.NewBatch(t.Columns(), trainBatch)
		for i := range trainBatch {
			if err := t.Encode(&set.Examples[(k*trainBatch+i)%len(set.Examples)], out[k], i); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

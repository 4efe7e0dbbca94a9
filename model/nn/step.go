package nn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
)

// Role says what a parameter of a program is.
type Role uint8

const (
	Input  Role = iota // written by the host before each step
	State              // lives from step to step; some output becomes it
	Frozen             // written once
)

func (r Role) String() string { return [...]string{"input", "state", "frozen"}[r] }

// Param is one parameter of a built graph.
type Param struct {
	Name  string
	Role  Role
	DType dtypes.DType
	Shape []int
	Node  *graph.Node
}

// Output is one result of a built graph. State names the parameter that it
// becomes in the next step; it is empty for the loss and what is right.
type Output struct {
	Name  string
	State string
	Node  *graph.Node
}

// Coefficients of the optimizers.
const (
	momentumBeta = 0.9
	adamBeta1    = 0.9
	adamBeta2    = 0.999
	adamEps      = 1e-8
)

// maxHeadRate bounds the head's learning rate over the others'.
const maxHeadRate = 1e6

// MaxClients bounds StepSpec.Clients.
const MaxClients = 1024

// StepSpec describes one training step of an adapter at a rank.
type StepSpec struct {
	Config   model.Config
	Method   model.Method
	Classes  int
	Rank     int // 1..r_max; 0 trains the head alone
	Sequence int // tokens of an example, 1..max_position_embeddings

	// Spec is the local training; at most 4096 examples a batch. Steps, Epochs and Arithmetic
	// are not in a step, and its learning rate is an input: only how many times the others' the
	// head's is follows from LearningRate and HeadLearningRate here, once where either is 0.
	training.Spec

	// Clients that take their steps at once, each from values of its own: trained
	// tensors and moments have a leading axis of them, and every input but the learning
	// rate and the step has their rows one client after another. The loss is the sum of
	// theirs, whose gradient is every client's own. 0 is one client without that axis.
	// For simulations on a backend of the host; programs leave it 0.
	Clients int

	// Keep lets the host give the step what its convolutions make of recordings: see trainer.InputKept.
	Keep bool

	// Recompute is what of the way forward is computed again on the way back. It changes gradients by rounding alone.
	Recompute Recompute `json:",omitempty"`

	// Smooth writes exp and tanh by expm1: for the Go backend in a
	// GOEXPERIMENT=simd build, see elementary. Programs leave it false.
	Smooth bool
}

// Layout checks the specification and returns the layout of its adapter.
func (s StepSpec) Layout() (*model.Layout, error) {
	lay, err := model.NewLayout(s.Config, s.Method, s.Classes)
	if err != nil {
		return nil, err
	}
	if err := lay.CheckRank(s.Rank); err != nil {
		return nil, err
	}
	switch {
	case s.Batch < 1 || s.Batch > training.MaxBatch:
		return nil, fmt.Errorf("nn: batch is %d, want 1..%d", s.Batch, training.MaxBatch)
	case s.MicroBatch < 0 || s.MicroBatch > s.Batch || s.MicroBatch > 0 && s.Batch%s.MicroBatch != 0:
		return nil, fmt.Errorf("nn: micro-batch is %d, want a divisor of the batch, %d", s.MicroBatch, s.Batch)
	case s.Sequence < 1 || s.Sequence > s.Config.MaxTokens():
		return nil, fmt.Errorf("nn: sequence is %d, want 1..%d, the positions of the base", s.Sequence, s.Config.MaxTokens())
	case !slices.Contains(training.Optimizers, s.Optimizer):
		return nil, fmt.Errorf("nn: optimizer is %q, want one of %s", s.Optimizer, strings.Join(training.Optimizers, ", "))
	case !(s.HeadRate() >= 0 && s.HeadRate() <= maxHeadRate):
		return nil, fmt.Errorf("nn: the head's learning rate is %v times the others', want within 0..%v", s.HeadRate(), maxHeadRate)
	case s.Clients < 0 || s.Clients > MaxClients || s.Clients > 0 && !s.Together(lay):
		return nil, fmt.Errorf("nn: %d clients at once: want 0..%d, that label texts or words by LoRA, biases or a head, over embeddings that stay",
			s.Clients, MaxClients)
	case s.Keep && (s.Clients > 0 || !Keepable(lay)):
		return nil, fmt.Errorf("nn: a step with kept convolutions needs one client and untrained convolutions")
	case !(s.WeightDecay >= 0 && s.WeightDecay < 1):
		return nil, fmt.Errorf("nn: weight decay is %v, want within [0, 1)", s.WeightDecay)
	}
	return lay, nil
}

// Together reports whether several clients can take this step at once.
func (s StepSpec) Together(lay *model.Layout) bool {
	if !s.Method.Task.Labelled() || s.Config.Textless() || s.Method.Bottlenecks() || s.rows() < s.Batch {
		return false
	}
	for _, e := range lay.Entries() {
		if strings.HasPrefix(e.Name, "embeddings.") && !strings.HasPrefix(e.Name, "embeddings.LayerNorm.") {
			return false // looked up, not multiplied
		}
	}
	return true
}

// HeadRate is the head's learning rate over the others'.
func (s StepSpec) HeadRate() float64 {
	if s.LearningRate == 0 || s.HeadLearningRate == 0 {
		return 1
	}
	return s.HeadLearningRate / s.LearningRate
}

// rows are the examples that the program takes at once.
func (s StepSpec) rows() int {
	if s.MicroBatch > 0 {
		return s.MicroBatch
	}
	return s.Batch
}

// Build adds the step to an empty graph: forward, backward, update. Parameters
// come in the order inputs, trained tensors (the layout's order), optimizer
// states, sums over micro-batches, kept features, frozen tensors; the outputs are the loss, what is right
// where that is told, and then the new value of every state in the parameters' order.
//
// A step in micro-batches is the same program run once for each, in the examples'
// order: the sums of gradients and weights are states of its own, so that its bits
// follow from Batch and MicroBatch alone, whatever runs it.
func (s StepSpec) Build(g *graph.Graph) (params []Param, outputs []Output, err error) {
	lay, err := s.Layout()
	if err != nil {
		return nil, nil, err
	}
	columns, err := task.Columns(lay, s.Sequence)
	if err != nil {
		return nil, nil, err
	}
	err = catch(func() { params, outputs = s.build(g, lay, columns) })
	return params, outputs, err
}

func (s StepSpec) build(g *graph.Graph, lay *model.Layout, columns []task.Column) ([]Param, []Output) {
	p := newParams(g)
	var each []int // the axis that trained tensors have first
	if s.Clients > 0 {
		each = []int{s.Clients}
		s.Batch, s.MicroBatch = s.Batch*s.Clients, 0
	}
	for _, c := range columns {
		p.add(c.Name, Input, dtypeOf(c.Type), append([]int{s.rows()}, c.Shape...)...)
	}
	lr := p.add(trainer.InputRate, Input, dtypes.Float32)
	step := p.add(trainer.InputStep, Input, dtypes.Float32)
	var micro *accumulator
	if s.rows() < s.Batch {
		micro = &accumulator{last: p.add(trainer.InputLast, Input, dtypes.Float32)}
	}
	var features *kept
	if s.Keep {
		features = &kept{given: p.add(trainer.InputKept, Input, dtypes.Float32)}
	}

	headRate := lr
	if times := s.HeadRate(); times > 0 && times != 1 {
		headRate = graph.MulScalar(lr, times)
	}
	var names []string
	var rates []*graph.Node // by trained tensor
	var trained []*graph.Node
	for _, span := range lay.Spans(s.Rank) {
		if span.Len > 0 {
			rate := lr
			if span.Kind == model.KindHead {
				rate = headRate
			}
			rates = append(rates, rate)
			names = append(names, span.Name)
			trained = append(trained, p.add(span.Name, State, dtypes.Float32, slices.Concat(each, span.Shape)...))
		}
	}
	moments := make([][]*graph.Node, len(names)) // by trained tensor
	for k, suffix := range optimizerStates(s.Optimizer) {
		for i, name := range names {
			shape := trained[i].Shape().Dimensions
			if s.Optimizer == training.Shampoo {
				shape = s.grid(shape).shape(k)
			}
			moments[i] = append(moments[i], p.add(name+suffix, State, dtypes.Float32, shape...))
		}
	}
	if micro != nil {
		micro.addStates(p, names, trained, s.HeldOut > 0 && s.Method.Task.Judged())
	}
	features.addState(p, s)
	enc := encoder{cfg: s.Config, task: lay.Method.Task, scale: 0, params: p, elementary: elementary{s.Smooth}, kept: features, recompute: s.Recompute}
	if s.Rank > 0 {
		enc.scale = s.Method.Scale(s.Rank)
	}
	a := losses[lay.Method.Task.Loss()](enc, s, lay.Outputs())
	grads := graph.Gradient(a.root, trained...)
	if micro != nil {
		grads = micro.add(&a, grads, p.byName[task.Weights])
	}
	outputs := []Output{{Name: trainer.OutputLoss, Node: a.loss}}
	if a.right != nil {
		outputs = append(outputs, Output{Name: trainer.OutputRight, Node: a.right})
	}
	if s.Optimizer == training.Shampoo {
		grads = s.shampoo(grads, moments, step, micro)
	}
	for i, name := range names {
		before := slices.Clone(moments[i])
		x := micro.choose(s.update(trained[i], grads[i], rates[i], step, moments[i]), trained[i])
		for k := range before {
			moments[i][k] = micro.choose(moments[i][k], before[k])
		}
		outputs = append(outputs, Output{Name: name + ".new", State: name, Node: x})
	}
	for k, suffix := range optimizerStates(s.Optimizer) {
		for i, name := range names {
			outputs = append(outputs, Output{Name: name + suffix + ".new", State: name + suffix, Node: moments[i][k]})
		}
	}
	return p.list, slices.Concat(outputs, micro.outputs(), features.outputs())
}

func dtypeOf(t task.Type) dtypes.DType {
	if t == task.F32 {
		return dtypes.Float32
	}
	return dtypes.Int32
}

// optimizerStates names the suffixes of an optimizer's state tensors.
func optimizerStates(o string) []string {
	switch o {
	case training.Momentum:
		return []string{".momentum"}
	case training.AdamW:
		return []string{".adam_m", ".adam_v"}
	case training.Shampoo:
		return shampooStates
	}
	return nil
}

// update returns the new value of a tensor and replaces its moments by theirs.
func (s StepSpec) update(x, grad, lr, step *graph.Node, moments []*graph.Node) *graph.Node {
	switch s.Optimizer {
	case training.Momentum:
		moments[0] = graph.Add(graph.MulScalar(moments[0], momentumBeta), grad)
		return graph.Sub(x, scaleBy(moments[0], lr))
	case training.AdamW:
		var dir *graph.Node
		dir, moments[0], moments[1] = adamDirection(grad, step, moments[0], moments[1])
		if s.WeightDecay > 0 {
			dir = graph.Add(dir, graph.MulScalar(x, s.WeightDecay))
		}
		return graph.Sub(x, scaleBy(dir, lr))
	}
	return graph.Sub(x, scaleBy(grad, lr))
}

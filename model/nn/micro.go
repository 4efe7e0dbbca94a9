package nn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// accumulator adds gradients up over a step's micro-batches. A nil one is of a step
// that is not cut.
type accumulator struct {
	last   *graph.Node   // trainer.InputLast
	names  []string      // of the states
	states []*graph.Node // sum of weights, sum of losses, sums of gradients
	grown  []*graph.Node // by state: what the next micro-batch begins with
}

// Names of the states beside the sums of gradients, which are named after their tensors.
const (
	weightSum = "micro.weights"
	lossSum   = "micro.loss"
	rightSum  = "micro.right"
	gradSum   = ".grad_sum"
)

// addStates adds the sums, which start at zero; judged: that of what is right, too.
func (a *accumulator) addStates(p *params, names []string, trained []*graph.Node, judged bool) {
	state := func(name string, shape ...int) {
		a.names = append(a.names, name)
		a.states = append(a.states, p.add(name, State, dtypes.Float32, shape...))
	}
	state(weightSum)
	state(lossSum)
	if judged {
		state(rightSum)
	}
	for i, name := range names {
		state(name+gradSum, trained[i].Shape().Dimensions...)
	}
}

// add takes a micro-batch's means, its gradients and its examples' weights, and makes them
// the means over all micro-batches up to this one: in the last, the step's.
func (a *accumulator) add(of *aim, grads []*graph.Node, weights *graph.Node) []*graph.Node {
	w := graph.ReduceAllSum(weights)
	terms := []*graph.Node{w, graph.Mul(of.loss, w)}
	if of.right != nil {
		terms = append(terms, graph.Mul(of.right, w))
	}
	first := len(terms)
	for _, g := range grads {
		terms = append(terms, scaleBy(g, w))
	}
	sums := make([]*graph.Node, len(terms)) // with this micro-batch
	for i, t := range terms {
		sums[i] = graph.Add(a.states[i], t)
		a.grown = append(a.grown, a.choose(graph.ZerosLike(sums[i]), sums[i]))
	}
	over := graph.AddScalar(sums[0], 1e-9)
	one := graph.Div(graph.OnesLike(over), over)
	var means []*graph.Node
	for _, s := range sums[first:] {
		means = append(means, scaleBy(s, one))
	}
	if of.loss = graph.Mul(sums[1], one); of.right != nil {
		of.right = graph.Mul(sums[2], one)
	}
	return means
}

// choose is what holds after the step's last micro-batch, or after one before.
func (a *accumulator) choose(updated, kept *graph.Node) *graph.Node {
	if a == nil || updated == kept {
		return updated
	}
	return pick(graph.GreaterThan(a.last, graph.ScalarZero(a.last.Graph(), dtypes.Float32)), updated, kept)
}

// outputs are the states' new values.
func (a *accumulator) outputs() (list []Output) {
	if a == nil {
		return nil
	}
	for i, name := range a.names {
		list = append(list, Output{Name: name + ".new", State: name, Node: a.grown[i]})
	}
	return list
}

package nn

import (
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
)

// keptActivations is how many bytes of layers' activations a decoder's step may keep for its
// way back; of more it keeps what each layer reads, and computes the layer again. It follows
// from the shape alone, so that a step is one program everywhere. A variable for tests.
var keptActivations = 128 << 20

// activations is about how many bytes layers keep of b texts of s tokens.
func (d decoder) activations(b, s int) int {
	c := d.cfg
	each := s*(8*c.HiddenSize+4*c.IntermediateSize) + 3*c.NumAttentionHeads*s*s
	return 4 * b * each * c.NumHiddenLayers
}

// trainedOf are the trained tensors of a layer that the graph has.
func (d decoder) trainedOf(layer int) (nodes []*graph.Node) {
	for _, p := range d.params.list {
		if p.Role == State && strings.HasPrefix(p.Name, d.cfg.DecoderLayerPrefix(layer)) && isTrained(p.Name) {
			nodes = append(nodes, p.Node)
		}
	}
	return nodes
}

// isTrained says whether a state is a trained tensor, not what an optimizer keeps of it.
func isTrained(name string) bool {
	return strings.HasSuffix(name, ".lora_A.weight") || strings.HasSuffix(name, ".lora_B.weight") || strings.HasSuffix(name, model.DeltaSuffix)
}

// recomputes says whether a step computes its layers again: where their activations are many
// and nothing but layers is trained.
func (d decoder) recomputes(b, s int) bool {
	if d.activations(b, s) <= keptActivations {
		return false
	}
	trained, within := 0, 0
	for _, p := range d.params.list {
		if p.Role == State && isTrained(p.Name) {
			trained++
		}
	}
	for l := range d.cfg.NumHiddenLayers {
		within += len(d.trainedOf(l))
	}
	return trained == within
}

// recomputedLoss is the loss of the inputs that the graph has and what has its gradient, with
// one layer's activations in memory at a time beside what each layer reads (Chen et al.
// 2016): from the last layer to the first each is computed again behind a barrier, which
// keeps it apart from the first time, and its gradients follow from those of what it gave.
func (d decoder) recomputedLoss() (loss, surrogate *graph.Node) {
	in := d.params.byName
	tokens, places, weights, labels := in[task.Tokens], in[task.Places], in[task.Weights], in[task.Labels]
	keep := d.read(tokens, places)
	layer := d.layers(tokens, keep)
	read := []*graph.Node{d.embedded(tokens, keep)} // by each layer, and by the head
	for l := range d.cfg.NumHiddenLayers {
		read = append(read, layer(l, read[l]))
	}
	again := func(l int) *graph.Node { return graph.OptimizationBarrier(graph.StopGradient(read[l])) }

	x := again(d.cfg.NumHiddenLayers)
	n := labels.Shape().Size()
	loss, root := d.headLoss(d.picked(d.last(x), places, weights), graph.Reshape(labels, n), graph.Reshape(weights, n))
	grad := graph.Gradient(root, x)[0]
	for l := d.cfg.NumHiddenLayers - 1; l >= 0; l-- {
		x := again(l)
		trained := d.trainedOf(l)
		root := graph.ReduceAllSum(graph.Mul(layer(l, x), graph.StopGradient(grad)))
		grads := graph.Gradient(root, append([]*graph.Node{x}, trained...)...)
		grad = grads[0]
		for i, p := range trained {
			term := graph.ReduceAllSum(graph.Mul(p, graph.StopGradient(grads[1+i])))
			if surrogate == nil {
				surrogate = term
			} else {
				surrogate = graph.Add(surrogate, term)
			}
		}
	}
	return loss, surrogate
}

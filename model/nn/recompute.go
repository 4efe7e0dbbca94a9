package nn

import (
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// A stage is a part of a layer: what it makes of what the one before gave, the first of the layer's states [n, hidden].
// modules names the maps and norms within.
type stage struct {
	modules []string
	of      func(in []*graph.Node) []*graph.Node
}

// throughout is the state behind a layer's stages.
func throughout(stages []stage, x *graph.Node) *graph.Node {
	in := []*graph.Node{x}
	for _, s := range stages {
		in = s.of(in)
	}
	return in[0]
}

// joined makes one stage of a layer's.
func joined(stages []stage) []stage {
	all := stage{of: func(in []*graph.Node) []*graph.Node { return []*graph.Node{throughout(stages, in[0])} }}
	for _, s := range stages {
		all.modules = append(all.modules, s.modules...)
	}
	return []stage{all}
}

// Recompute names what a step computes again in its backward pass instead of keeping it.
type Recompute int

const (
	// RecomputeByShape keeps a decoder's activations up to keptActivations bytes, and else what the stages of its layers
	// read up to keptProducts; and an encoder's attention up to keptScores.
	RecomputeByShape Recompute = iota
	// RecomputeNothing keeps all activations.
	RecomputeNothing
	// RecomputeSelected keeps what the stages of a decoder's layers read, which are what linear maps give, and computes the
	// rest again; of an encoder it computes attention and activations again.
	RecomputeSelected
	// RecomputeLayers keeps what each of a decoder's layers reads; an encoder's are as with RecomputeSelected.
	RecomputeLayers
)

// Recomputes are what a step may compute again, of which the first is right whose program fits into so many MiB, the fastest
// standing first: see training.Spec.Memory. Where none are given, with 0, its shape alone decides.
func Recomputes(memory int) []Recompute {
	if memory == 0 {
		return []Recompute{RecomputeByShape}
	}
	return []Recompute{RecomputeNothing, RecomputeSelected, RecomputeLayers}
}

// Of RecomputeByShape, in bytes. All of it follows from the shape alone, so that a step is one program everywhere.
const keptActivations, keptProducts, keptScores = 128 << 20, 256 << 20, 256 << 20

// attention reports whether that of so many layers of b sequences of s places is computed again.
func (r Recompute) attention(b, heads, s, layers int) bool {
	return r > RecomputeNothing || r == RecomputeByShape && 4*3*b*heads*s*s*layers > keptScores
}

// activations is about how many bytes layers keep of b texts of s tokens.
func (d decoder) activations(b, s int) int {
	c := d.cfg
	each := s*(8*c.HiddenSize+4*c.IntermediateSize) + 3*c.NumAttentionHeads*s*s
	return 4 * b * each * c.NumHiddenLayers
}

// products is how many bytes the stages of layers read of b texts of s tokens.
func (d decoder) products(b, s int) int {
	c := d.cfg
	return 4 * b * s * (2*c.HiddenSize + c.QuerySize() + 2*c.KeySize() + 2*c.IntermediateSize) * c.NumHiddenLayers
}

// trainedOf are the trained tensors of modules that the graph has.
func (d decoder) trainedOf(modules []string) (nodes []*graph.Node) {
	for _, p := range d.params.list {
		in := func(module string) bool { return module != "" && strings.HasPrefix(p.Name, module+".") }
		if p.Role == State && isTrained(p.Name) && slices.ContainsFunc(modules, in) {
			nodes = append(nodes, p.Node)
		}
	}
	return nodes
}

// isTrained reports whether a state is a trained tensor, not what an optimizer keeps of it.
func isTrained(name string) bool {
	return strings.HasSuffix(name, ".lora_A.weight") || strings.HasSuffix(name, ".lora_B.weight") || strings.HasSuffix(name, model.DeltaSuffix)
}

// recomputes reports whether a step computes of its layers again: never where more than layers is trained.
func (d decoder) recomputes(b, s int) bool {
	if d.recompute == RecomputeNothing || d.recompute == RecomputeByShape && d.activations(b, s) <= keptActivations {
		return false
	}
	trained, within := 0, 0
	for _, p := range d.params.list {
		if p.Role == State && isTrained(p.Name) {
			trained++
		}
	}
	for l := range d.cfg.NumHiddenLayers {
		for _, stage := range d.stages(b, d.cfg.DecoderLayer(l), nil, rotation{}, nil, nil) {
			within += len(d.trainedOf(stage.modules))
		}
	}
	return trained == within
}

// recomputedLoss is the loss of the inputs that the graph has and what has its gradient, with one layer's activations in
// memory at a time beside what is kept (Chen et al. 2016; of products alone: Korthikanti et al. 2022): from the last
// stage to the first each is computed again behind a barrier, which keeps it apart from the first time, and its
// gradients follow from those of what it gave.
func (d decoder) recomputedLoss() (loss, surrogate *graph.Node) {
	in := d.params.byName
	tokens, places, weights, labels := in[task.Tokens], in[task.Places], in[task.Weights], in[task.Labels]
	b, s := tokens.Shape().Dimensions[0], tokens.Shape().Dimensions[1]
	keep := d.read(tokens, places)
	layers := d.layers(tokens, keep)
	whole := d.recompute == RecomputeLayers || d.recompute == RecomputeByShape && d.products(b, s) > keptProducts
	var stages []stage
	for l := range d.cfg.NumHiddenLayers {
		of := layers(l)
		if whole {
			of = joined(of)
		}
		stages = append(stages, of...)
	}
	read := [][]*graph.Node{{d.embedded(tokens, keep)}} // by each stage, and by the head
	for i, stage := range stages {
		read = append(read, stage.of(read[i]))
	}
	barriers := map[*graph.Node]*graph.Node{}
	behind := func(list []*graph.Node) (leaves []*graph.Node) {
		for _, n := range list {
			if barriers[n] == nil {
				barriers[n] = graph.OptimizationBarrier(graph.StopGradient(n))
			}
			leaves = append(leaves, barriers[n])
		}
		return leaves
	}

	x := behind(read[len(stages)])
	n := labels.Shape().Size()
	loss, root := d.headLoss(d.picked(d.last(x[0]), places, weights), graph.Reshape(labels, n), graph.Reshape(weights, n))
	grads := graph.Gradient(root, x...)
	add := func(sum *graph.Node, a, b *graph.Node) *graph.Node {
		term := graph.ReduceAllSum(graph.Mul(a, graph.StopGradient(b)))
		if sum == nil {
			return term
		}
		return graph.Add(sum, term)
	}
	for i := len(stages) - 1; i >= 0; i-- {
		x, trained := behind(read[i]), d.trainedOf(stages[i].modules)
		var root *graph.Node
		for j, y := range stages[i].of(x) {
			root = add(root, y, grads[j])
		}
		grads = graph.Gradient(root, slices.Concat(x, trained)...)
		for j, p := range trained {
			surrogate = add(surrogate, p, grads[len(x)+j])
		}
	}
	return loss, surrogate
}

// again is f of inputs that have the shape of what it gives. For its gradient f is computed again, behind barriers, so
// that nothing within it is kept for the way back.
func again(f func(in []*graph.Node) *graph.Node, in ...*graph.Node) *graph.Node {
	stopped := make([]*graph.Node, len(in))
	for i, x := range in {
		stopped[i] = graph.StopGradient(x)
	}
	grads := map[*graph.Node][]*graph.Node{} // by that of what f gives
	back := func(of *graph.Node) []*graph.Node {
		if grads[of] == nil {
			leaves := make([]*graph.Node, len(in))
			for i, x := range stopped {
				leaves[i] = graph.OptimizationBarrier(x)
			}
			grads[of] = graph.Gradient(graph.ReduceAllSum(graph.Mul(f(leaves), graph.StopGradient(of))), leaves...)
		}
		return grads[of]
	}
	y := f(stopped)
	for i, x := range in { // +0, whose gradient is that of x
		y = graph.Add(y, graph.Sub(graph.IdentityWithCustomGradient(x, func(_, of *graph.Node) *graph.Node { return back(of)[i] }), stopped[i]))
	}
	return y
}

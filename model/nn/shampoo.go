package nn

import (
	"cmp"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// FedShampoo's local optimizer (Niwa et al., appendix D.1 of the competition's report, algorithm 1): a matrix's gradient G
// is multiplied from either side by the inverse fourth roots of what it summed up, L = I + sum G G^T and R = I + sum G^T G,
// and each value of the product clipped. Large matrices are preconditioned block by block. In a device's round both
// begin anew, as all local optimizers here do: the states start at zero, so they hold L-I, R-I and their roots less I.
const (
	shampooRidge  = 1e-4
	shampooClip   = 0.2
	shampooSide   = 64 // of the largest block
	shampooRounds = 20 // of Newton's iteration: 2e-5 at a condition of 1e4
	// shampooGroup is how many values of blocks of one side are inverted at once, beside a tensor's own: it bounds what an
	// inversion takes, and how many a step is made of.
	shampooGroup = 1 << 20
)

// Suffixes of its states: sums and roots of the left and of the right side.
var shampooStates = []string{".shampoo_l", ".shampoo_r", ".shampoo_l_root", ".shampoo_r_root"}

// grid is how the m x n matrices of a tensor, one for each of lead clients, are cut into blocks.
type grid struct{ lead, m, n, rows, cols int }

func (s StepSpec) grid(shape []int) grid {
	g := grid{lead: 1, m: 1}
	if s.Clients > 0 {
		g.lead, shape = shape[0], shape[1:]
	}
	if len(shape) > 0 {
		g.m = shape[0]
	}
	g.n = model.Elements(shape) / g.m
	side := func(n int) int { return upper(n, upper(n, shampooSide)) }
	g.rows, g.cols = side(g.m), side(g.n)
	return g
}

// upper is n/d, rounded up.
func upper(n, d int) int { return (n + d - 1) / d }

// cut returns the blocks of x, [blocks,rows,cols]; those at the edges are filled up with zeros.
func (g grid) cut(x *graph.Node) *graph.Node {
	down, across := upper(g.m, g.rows), upper(g.n, g.cols)
	x = graph.Reshape(x, g.lead, g.m, g.n)
	if down*g.rows > g.m || across*g.cols > g.n {
		x = graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), compute.PadAxis{},
			compute.PadAxis{End: down*g.rows - g.m}, compute.PadAxis{End: across*g.cols - g.n})
	}
	x = graph.TransposeAllAxes(graph.Reshape(x, g.lead, down, g.rows, across, g.cols), 0, 1, 3, 2, 4)
	return graph.Reshape(x, g.lead*down*across, g.rows, g.cols)
}

// join undoes cut.
func (g grid) join(blocks *graph.Node, shape []int) *graph.Node {
	down, across := upper(g.m, g.rows), upper(g.n, g.cols)
	x := graph.TransposeAllAxes(graph.Reshape(blocks, g.lead, down, across, g.rows, g.cols), 0, 1, 3, 2, 4)
	x = graph.Reshape(x, g.lead, down*g.rows, across*g.cols)
	x = graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, g.m), graph.AxisRange(0, g.n))
	return graph.Reshape(x, shape...)
}

// shape is that of the i-th of shampooStates.
func (g grid) shape(i int) []int {
	side := [2]int{g.rows, g.cols}[i%2]
	return []int{g.lead * upper(g.m, g.rows) * upper(g.n, g.cols), side, side}
}

// shampoo returns the directions of a step that gradients give, and replaces the states by what they become.
func (s StepSpec) shampoo(grads []*graph.Node, states [][]*graph.Node, step *graph.Node, micro *accumulator) []*graph.Node {
	sums := micro.every(cmp.Or(s.StatisticsEvery, training.StatisticsEvery), step)
	roots := micro.every(cmp.Or(s.RootsEvery, training.RootsEvery), step)
	blocks := make([]*graph.Node, len(grads))
	var inverted []*graph.Node // the groups' members, in order
	var at [][2]int            // by member: the tensor and the side
	for i, grad := range grads {
		g := s.grid(grad.Shape().Dimensions)
		blocks[i] = g.cut(grad)
		for side, axis := range []int{2, 1} {
			sum := graph.Add(states[i][side], graph.DotGeneral(blocks[i], []int{axis}, []int{0}, blocks[i], []int{axis}, []int{0}))
			states[i][side] = pick(sums, sum, states[i][side])
			inverted, at = append(inverted, states[i][side]), append(at, [2]int{i, 2 + side})
		}
	}
	for k, root := range inverseRoots(inverted) {
		i, state := at[k][0], at[k][1]
		states[i][state] = pick(roots, root, states[i][state])
	}
	out := make([]*graph.Node, len(grads))
	for i, grad := range grads {
		half := graph.Add(blocks[i], product(states[i][2], blocks[i]))
		whole := graph.Add(half, product(half, states[i][3]))
		out[i] = s.grid(grad.Shape().Dimensions).join(graph.ClipScalar(whole, -shampooClip, shampooClip), grad.Shape().Dimensions)
	}
	return out
}

// product multiplies blocks [n,a,b] by blocks [n,b,c].
func product(a, b *graph.Node) *graph.Node {
	return graph.DotGeneral(a, []int{2}, []int{0}, b, []int{1}, []int{0})
}

// inverseRoots is (x + (1+ridge) I)^(-1/4) - I of each list of blocks [n,k,k], of those of one side several at once.
func inverseRoots(list []*graph.Node) []*graph.Node {
	out := make([]*graph.Node, len(list))
	for i := range list {
		if out[i] != nil {
			continue
		}
		dims := list[i].Shape().Dimensions
		var group []int
		values := 0
		for k := i; k < len(list); k++ {
			size := list[k].Shape().Size()
			if out[k] == nil && list[k].Shape().Dimensions[1] == dims[1] && (k == i || values+size <= shampooGroup) {
				group, values = append(group, k), values+size
			}
		}
		members := make([]*graph.Node, len(group))
		for n, k := range group {
			members[n] = list[k]
		}
		root, from := inverseRoot(graph.Concatenate(members, 0)), 0
		for _, k := range group {
			n := list[k].Shape().Dimensions[0]
			out[k] = graph.Slice(root, graph.AxisRange(from, from+n))
			from += n
		}
	}
	return out
}

// inverseRoot is that of blocks, by the coupled Newton iteration (Higham, Functions of Matrices, 2008, 7.3, for p = 4): of
// A with M = zA and X = z^(1/4) I it makes M go to I and X to A^(-1/4), where z is 5/2 over A's Frobenius norm.
func inverseRoot(x *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	row := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, dims...), 1)
	col := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, dims...), 2)
	eye := graph.ConvertDType(graph.Equal(row, col), dtypes.Float32)
	whole := func(of *graph.Node) *graph.Node { // a number a block
		return graph.BroadcastToDims(graph.Reshape(of, dims[0], 1, 1), dims...)
	}
	a := graph.Add(x, graph.MulScalar(eye, 1+shampooRidge))
	norm := graph.Sqrt(graph.ReduceSum(graph.Mul(a, a), 1, 2))
	z := graph.Div(graph.MulScalar(graph.OnesLike(norm), 2.5), norm)
	m, root := graph.Mul(a, whole(z)), graph.Mul(eye, whole(graph.Sqrt(graph.Sqrt(z))))
	for range shampooRounds {
		n := graph.MulScalar(graph.Sub(graph.MulScalar(eye, 5), m), 0.25)
		root = product(root, n)
		twice := product(n, n)
		m = product(product(twice, twice), m)
	}
	return graph.Sub(root, eye)
}

// every reports whether step is a multiple of n; of a step in micro-batches, in the last of them.
func (a *accumulator) every(n int, step *graph.Node) *graph.Node {
	g := step.Graph()
	due := graph.Equal(graph.Rem(step, graph.Scalar(g, dtypes.Float32, float64(n))), graph.ScalarZero(g, dtypes.Float32))
	if a == nil {
		return due
	}
	return graph.LogicalAnd(due, graph.GreaterThan(a.last, graph.ScalarZero(g, dtypes.Float32)))
}

// pick is one of two values by a boolean. What only the first one needs is computed where it holds, in compiled programs.
func pick(holds, yes, no *graph.Node) *graph.Node {
	if !yes.IsScalar() {
		holds = graph.BroadcastToShape(holds, yes.Shape())
	}
	return graph.Where(holds, yes, no)
}

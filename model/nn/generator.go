package nn

import (
	"context"
	"fmt"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// generateBatch is the number of documents that are read and answered together.
const generateBatch = 8

// Inputs and outputs of the generating programs beside task's.
const (
	tokenName       = "token"       // i32 [B]: the last one written
	positionName    = "position"    // i32 []: how many were written before it
	biasName        = "bias"        // f32 [B,S']: masks the source's padding
	nextName        = "next"        // i32 [B]: the likeliest token
	probabilityName = "probability" // f32 [B]: its softmax
)

// Generator writes answers with an adapter at any rank, greedily: two programs from
// the graph code of the training step. encode reads a document and gives the keys and
// values that each layer of the decoder attends to; decode writes one token, with the
// keys and values of those before it as its state. The low-rank product is merged into
// the maps that it changes, so that the two programs serve every rank. The same call
// gives the same bits. Safe for concurrent use.
type Generator struct {
	seq    int
	inputs []task.Column // of the encoder

	encode, decode *Program
	mu             sync.Mutex
	adapted                 // by mu
	forced         *Program // of Logits, when it was asked for; by mu
}

// Answer is a generated answer.
type Answer struct {
	Tokens []int32 // without the end
	// Probability is the product of the tokens' probabilities but for the end's: how
	// sure the model is. It is not calibrated.
	Probability float64
}

// NewGenerator prepares answers to documents of seq tokens on a backend; nil is the Go
// backend. An answer has at most layout.LoRA.AnswerTokens() tokens.
func NewGenerator(layout *model.Layout, base *model.Base, seq int, be compute.Backend) (*Generator, error) {
	if layout.Method.Task.Reads() != model.ReadsDecoder {
		return nil, fmt.Errorf("nn: task is %s, want answer: only a base with a decoder writes text", layout.Method.Task)
	}
	if seq < 1 || seq > layout.Config.MaxTokens() {
		return nil, fmt.Errorf("nn: seq is %d, want 1..%d", seq, layout.Config.MaxTokens())
	}
	columns, err := task.Columns(layout, seq)
	if err != nil {
		return nil, err
	}
	g := &Generator{adapted: newAdapted(layout, base), seq: seq}
	for _, c := range columns {
		if c.Name == task.Tokens || c.Name == task.Boxes || c.Name == task.Patches {
			g.inputs = append(g.inputs, c)
		}
	}
	if g.encode, err = Compile(be, fmt.Sprintf("encode-s%d", seq), g.buildEncode); err != nil {
		return nil, err
	}
	if g.decode, err = Compile(be, fmt.Sprintf("decode-s%d", seq), g.buildDecode); err != nil {
		return nil, err
	}
	return g, g.freeze(g.encode, g.decode)
}

// places is the number of states that the decoder attends to.
func (g *Generator) places() int {
	return g.seq + g.layout.Config.T5.PageStates()
}

// begin adds what an adapter changes to a graph, as parameters that the host writes.
func (g *Generator) begin(gr *graph.Graph) t5 {
	return t5{cfg: g.layout.Config, params: mergedParams(newParams(gr), g.layout)}
}

func (g *Generator) source(e t5) source {
	for _, c := range g.inputs {
		e.params.add(c.Name, Input, dtypeOf(c.Type), append([]int{generateBatch}, c.Shape...)...)
	}
	in := e.params.byName
	return source{in[task.Tokens], in[task.Boxes], in[task.Patches]}
}

func (g *Generator) buildEncode(gr *graph.Graph) ([]Param, []Output, error) {
	e := g.begin(gr)
	m := e.encode(g.source(e))
	outputs := []Output{{Name: biasName, Node: m.bias}}
	for l := range e.cfg.T5.DecoderLayers {
		block := e.cfg.T5Block(true, l)
		for _, part := range []string{"k", "v"} {
			x := e.projected(m.states, block.Cross, part)
			outputs = append(outputs, Output{Name: crossName(l, part),
				Node: graph.Reshape(x, generateBatch, g.places(), e.cfg.InnerSize())})
		}
	}
	return e.params.list, outputs, nil
}

func crossName(layer int, part string) string { return fmt.Sprintf("cross.%d.%s", layer, part) }

// cachePrefix begins the names of what a layer keeps.
const cachePrefix = "cache."

func cacheName(layer int, part string) string {
	return fmt.Sprintf("%s%d.%s", cachePrefix, layer, part)
}

func (g *Generator) buildDecode(gr *graph.Graph) ([]Param, []Output, error) {
	e := g.begin(gr)
	b, t, s, inner, heads := generateBatch, g.layout.Method.AnswerTokens(), g.places(), e.cfg.InnerSize(), e.heads()
	token := e.params.add(tokenName, Input, dtypes.Int32, b)
	position := e.params.add(positionName, Input, dtypes.Int32)
	bias := e.params.add(biasName, Input, dtypes.Float32, b, s)
	keys := graph.BroadcastToDims(graph.Reshape(bias, b, 1, 1, s), b, heads, 1, s)

	place := graph.Iota(gr, shapes.Make(dtypes.Int32, t), 0)
	here := graph.BroadcastToDims(position, t)
	hot := graph.ConvertDType(graph.Equal(place, here), dtypes.Float32)
	later := graph.ConvertDType(graph.GreaterThan(place, here), dtypes.Float32)
	// A place that is not written yet takes the row of distance 0, and is masked.
	back := graph.Max(graph.Sub(here, place), graph.ZerosLike(place))
	near := graph.Gather(e.byDistance(model.T5DecoderBias, t, func(i int) int { return e.bucket(-i, false) }), graph.Reshape(back, t, 1)) // [t, heads]
	near = graph.Add(near, graph.BroadcastToDims(graph.Reshape(graph.MulScalar(later, maskedScore), t, 1), t, heads))
	near = graph.TransposeAllAxes(near, 1, 0)
	mask := graph.BroadcastToDims(graph.Reshape(near, 1, heads, 1, t), b, heads, 1, t)

	write := graph.BroadcastToDims(graph.Reshape(hot, 1, t, 1), b, t, inner)
	var outputs []Output
	x := e.words(graph.Reshape(token, b, 1))
	for l := range e.cfg.T5.DecoderLayers {
		block := e.cfg.T5Block(true, l)
		y := e.norm(x, block.SelfNorm)
		var cached [2]*graph.Node
		for i, part := range []string{"k", "v"} {
			old := e.params.add(cacheName(l, part), State, dtypes.Float32, b, t, inner)
			now := graph.BroadcastToDims(graph.Reshape(e.projected(y, block.Self, part), b, 1, inner), b, t, inner)
			cached[i] = graph.Add(graph.Mul(old, graph.OneMinus(write)), graph.Mul(now, write))
			outputs = append(outputs, Output{Name: cacheName(l, part) + ".new", State: cacheName(l, part), Node: cached[i]})
		}
		flat := func(x *graph.Node, n int) *graph.Node { return graph.Reshape(x, b*n, inner) }
		x = graph.Add(x, e.attend(e.projected(y, block.Self, "q"), flat(cached[0], t), flat(cached[1], t), mask, block.Self))
		k := e.params.add(crossName(l, "k"), Input, dtypes.Float32, b, s, inner)
		v := e.params.add(crossName(l, "v"), Input, dtypes.Float32, b, s, inner)
		q := e.projected(e.norm(x, block.CrossNorm), block.Cross, "q")
		x = graph.Add(x, e.attend(q, flat(k, s), flat(v, s), keys, block.Cross))
		x = e.feedForward(x, block)
	}
	logits := linear(e.scaled(e.norm(x, model.T5DecoderNorm)), e.head(), nil)
	top := graph.ReduceMax(logits, -1)
	sum := graph.ReduceSum(graph.Exp(graph.Sub(logits, spread(top, logits))), -1)
	next := graph.ArgMax(logits, -1, dtypes.Int32)
	return e.params.list, append([]Output{{Name: nextName, Node: next},
		{Name: probabilityName, Node: graph.Div(graph.OnesLike(sum), sum)}}, outputs...), nil
}

// Answers writes the answer to each row of a batch of the task's columns. adapter is a
// slice at the given rank (Layout.Size(rank) values). It checks ctx between tokens.
func (g *Generator) Answers(ctx context.Context, adapter []float32, rank int, in task.Batch) ([]Answer, error) {
	tokens, _ := in.Column(task.Tokens)
	rows := len(tokens.I32) / g.seq
	in, err := in.Bound(g.inputs, rows)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.adapt(adapter, rank, g.encode, g.decode); err != nil {
		return nil, err
	}
	out := make([]Answer, 0, rows)
	for first := 0; first < rows; first += generateBatch {
		now, err := g.answer(ctx, in, first, min(generateBatch, rows-first))
		if err != nil {
			return nil, err
		}
		out = append(out, now...)
	}
	return out, nil
}

// answer writes the answers to rows first..first+n-1; the programs' other rows are
// padding.
func (g *Generator) answer(ctx context.Context, in task.Batch, first, n int) ([]Answer, error) {
	given := map[string]compute.Buffer{}
	defer func() {
		for _, b := range given {
			_ = b.Finalize()
		}
	}()
	if err := g.read(g.encode, given, in, first, n); err != nil {
		return nil, err
	}
	crossed, err := g.call(g.encode, given)
	if err != nil {
		return nil, err
	}
	for name, b := range crossed {
		given[name] = b
	}
	return g.write(ctx, given, n)
}

// read gives a program rows first..first+n-1 of its inputs, and zeros behind them.
func (g *Generator) read(p *Program, given map[string]compute.Buffer, in task.Batch, first, n int) error {
	for _, param := range p.Params {
		if param.Role != Input {
			continue
		}
		v, _ := in.Column(param.Name)
		v.Shape = param.Shape[1:] // of one example
		rows := task.NewBatch([]task.Column{v.Column}, generateBatch)
		for i := range n {
			rows.Copy(i, task.Batch{v}, first+i)
		}
		var flat any = rows[0].I32
		if v.Type == task.F32 {
			flat = rows[0].F32
		}
		b, err := p.Buffer(param, flat)
		if err != nil {
			return err
		}
		given[param.Name] = b
	}
	return nil
}

// write runs decode until every one of n answers has ended.
func (g *Generator) write(ctx context.Context, given map[string]compute.Buffer, n int) ([]Answer, error) {
	params := map[string]Param{}
	for _, p := range g.decode.Params {
		params[p.Name] = p
		if p.Role == State && g.values[p.Name] == nil {
			b, err := g.decode.Buffer(p, make([]float32, model.Elements(p.Shape)))
			if err != nil {
				return nil, err
			}
			given[p.Name] = b
		}
	}
	set := func(name string, flat []int32) error {
		b, err := g.decode.Buffer(params[name], flat)
		if old := given[name]; old != nil {
			_ = old.Finalize()
		}
		given[name] = b
		return err
	}
	last := make([]int32, generateBatch)
	for i := range last {
		last[i] = int32(g.layout.Config.T5.Start)
	}
	answers, ended := make([]Answer, n), make([]bool, n)
	for i := range answers {
		answers[i].Probability = 1
	}
	for at, left := 0, n; left > 0 && at < g.layout.Method.AnswerTokens(); at++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := set(tokenName, last); err != nil {
			return nil, err
		}
		if err := set(positionName, []int32{int32(at)}); err != nil {
			return nil, err
		}
		out, err := g.call(g.decode, given)
		if err != nil {
			return nil, err
		}
		probability := make([]float32, generateBatch)
		if err := out[nextName].ToFlatData(last); err != nil {
			return nil, err
		}
		if err := out[probabilityName].ToFlatData(probability); err != nil {
			return nil, err
		}
		for name, b := range out {
			if name == nextName || name == probabilityName {
				_ = b.Finalize()
				continue
			}
			_ = given[name].Finalize()
			given[name] = b
		}
		for i := range answers {
			switch {
			case ended[i]:
			case int(last[i]) == g.layout.Config.T5.End:
				ended[i] = true
				left--
			default:
				answers[i].Tokens = append(answers[i].Tokens, last[i])
				answers[i].Probability *= float64(probability[i])
			}
		}
	}
	return answers, nil
}

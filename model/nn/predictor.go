package nn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// predictBatch is the most rows of one forward pass.
const predictBatch = 16

// mostProduct bounds the multiplications of one matrix product of a pass: a compiled
// program can be stopped between its products alone, and is refused where one takes
// longer.
const mostProduct = 1 << 30

// rows is the number of rows of a pass over so many tokens.
func (p *Predictor) rows(seq int) int {
	c := p.layout.Config
	if c.Sees() {
		return predictBatch
	}
	if c.Hears() {
		return min(predictBatch, max(1, mostProduct/2/max(1, seq*c.HiddenSize*c.IntermediateSize)))
	}
	most := seq * c.HiddenSize * max(c.HiddenSize, c.IntermediateSize)
	for _, in := range p.inputs {
		if in.Name == task.Places || in.Name == task.DecoderTokens {
			most = max(most, in.Size()*c.HiddenSize*c.VocabSize)
		}
	}
	return min(predictBatch, max(1, mostProduct/most))
}

// Predictor answers a layout's task with an adapter at any rank. The low-rank product
// is merged into the maps that it changes on the host (W + s_b * B A), so that one
// graph serves every rank at the cost of the bare encoder. Texts are batched in
// the order of their lengths, each batch padded to an eighth of seq: padding is
// masked, so a text's logits do not depend on how much of it there is, up to
// rounding. The same call gives the same bits. Safe for concurrent use.
type Predictor struct {
	layout  *model.Layout
	base    *model.Base
	seq     int
	inputs  []task.Column
	backend compute.Backend

	mu       sync.Mutex
	programs map[int]*Program // by sequence length; under mu
	frozen   map[string]compute.Buffer
}

// NewPredictor prepares inference for token rows of length seq, or for images, on a
// backend; nil is the Go backend.
func NewPredictor(layout *model.Layout, base *model.Base, seq int, be compute.Backend) (*Predictor, error) {
	if seq < 1 || seq > layout.Config.MaxTokens() {
		return nil, fmt.Errorf("nn: seq is %d, want 1..%d, the positions of the base", seq, layout.Config.MaxTokens())
	}
	columns, err := task.Columns(layout, seq)
	if err != nil {
		return nil, err
	}
	p := &Predictor{layout: layout, base: base, seq: seq, inputs: task.Inputs(columns), backend: be, programs: map[int]*Program{}}
	prog, err := p.program(seq)
	if err != nil {
		return nil, err
	}
	p.frozen, err = frozenBuffers(prog, base, map[string]compute.Buffer{})
	return p, err
}

// cut is a column's shape in a pass over so many tokens.
func (p *Predictor) cut(c task.Column, seq int) []int {
	if len(c.Shape) == 0 || !slices.Contains([]string{task.Tokens, task.Types, task.Boxes}, c.Name) || p.layout.Config.Textless() {
		return c.Shape
	}
	return append([]int{seq}, c.Shape[1:]...)
}

// program returns the compiled forward pass for a sequence length.
func (p *Predictor) program(seq int) (*Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if prog, ok := p.programs[seq]; ok {
		return prog, nil
	}
	prog, err := Compile(p.backend, fmt.Sprintf("predict-s%d", seq), func(g *graph.Graph) ([]Param, []Output, error) {
		ps := newParams(g)
		for _, c := range p.inputs {
			ps.add(c.Name, Input, dtypeOf(c.Type), append([]int{p.rows(seq)}, p.cut(c, seq)...)...)
		}
		c := p.layout.Config
		mergedParams(ps, p.layout)
		logits := encoder{cfg: c, task: p.layout.Method.Task, params: ps}.answer(p.layout.Outputs())
		return ps.list, []Output{{Name: "logits", Node: logits}}, nil
	})
	if err == nil {
		p.programs[seq] = prog
	}
	return prog, err
}

// mergedParams adds what an adapter changes to a graph, under the base's own names:
// Layout.Merge gives the values.
func mergedParams(ps *params, layout *model.Layout) *params { return adapterParams(ps, layout, false) }

// adapterParams is mergedParams, or adds low-rank products' factors apart: Layout.Apart gives the values.
func adapterParams(ps *params, layout *model.Layout, apart bool) *params {
	added := map[string]bool{}
	entries := layout.Entries()
	for i, e := range entries {
		name, shape := e.Name, e.Shape
		switch {
		case apart && (e.Kind == model.KindA || e.Kind == model.KindB):
		case e.Kind == model.KindB:
			continue
		case e.Kind == model.KindA: // merged into the map that it changes
			name, shape = e.Changes(), []int{entries[i+1].Shape[0], e.Shape[1]}
		case e.Kind == model.KindDelta:
			name = e.Changes()
		}
		if !added[name] {
			added[name] = true
			ps.add(name, State, dtypes.Float32, shape...)
		}
	}
	return ps
}

// Logits is Outputs for texts: tokens holds rows of seq ids, padding at the end.
func (p *Predictor) Logits(ctx context.Context, adapter []float32, rank int, tokens [][]int32) ([][]float32, error) {
	rows := task.NewBatch(p.inputs, len(tokens))
	ids := rows.Int32(task.Tokens)
	for i, row := range tokens {
		if len(row) != p.seq || ids == nil {
			return nil, fmt.Errorf("nn: text %d: batch has %d tokens, want %d", i, len(row), p.seq)
		}
		copy(ids[i*p.seq:], row)
	}
	return p.Outputs(ctx, adapter, rank, rows, len(tokens))
}

// Outputs returns one row of scores an example: of its classes, or of the classes of
// each of its tokens up to the padding or beyond. adapter is a slice at the given rank
// (Layout.Size(rank) values); rows holds n examples in the task's columns. It checks
// ctx between batches.
func (p *Predictor) Outputs(ctx context.Context, adapter []float32, rank int, rows task.Batch, n int) ([][]float32, error) {
	if err := p.layout.CheckSlice(adapter, rank); err != nil {
		return nil, err
	}
	in, err := rows.Bound(p.inputs, n)
	if err != nil {
		return nil, err
	}
	ids := in.Int32(task.Tokens)
	used := make([]int, n) // by text: tokens before the padding
	order := make([]int, n)
	for i := range n {
		order[i] = i
		switch used[i] = p.seq; {
		case p.layout.Method.Task.Reads() == model.ReadsNext: // up to the last that is told, whatever is behind it
			used[i] = 1 + int(slices.Max(rowOf(in, task.Places, i)))
		case ids != nil:
			used[i] = p.length(ids[i*p.seq : (i+1)*p.seq])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(used[a], used[b]) })
	merged, err := p.layout.Merge(p.base, adapter, rank)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, n)
	for len(order) > 0 {
		// Whole batches as long as one sequence length holds the longest of them.
		s, n := 0, 0
		for n < len(order) {
			next := min(n+predictBatch, len(order))
			if at := p.padded(used[order[next-1]]); s != 0 && at != s {
				break
			} else {
				s, n = at, next
			}
		}
		prog, err := p.program(s)
		if err != nil {
			return nil, err
		}
		if err := p.forward(ctx, prog, s, merged, in, order[:n], out); err != nil {
			return nil, err
		}
		order = order[n:]
	}
	return out, nil
}

// rowOf are a row's values of a column that is there.
func rowOf(in task.Batch, name string, row int) []int32 {
	c, _ := in.Column(name)
	return c.I32[row*c.Size() : (row+1)*c.Size()]
}

// length is how many tokens are before the padding.
func (p *Predictor) length(row []int32) int {
	n := len(row)
	for pad := int32(p.layout.Config.PadTokenID); n > 0 && row[n-1] == pad; {
		n--
	}
	return n
}

// padded is the sequence length of a batch whose longest text has used tokens:
// one of at most eight, so that few programs are compiled.
func (p *Predictor) padded(used int) int {
	step := (p.seq + 7) / 8
	return min(p.seq, max(1, (used+step-1)/step)*step)
}

// forward answers the named rows in batches and writes out.
func (p *Predictor) forward(ctx context.Context, prog *Program, seq int, merged map[string][]float32, in task.Batch, rows []int, out [][]float32) error {
	buffers := make([]compute.Buffer, len(prog.Params))
	for i, param := range prog.Params {
		switch param.Role {
		case Frozen:
			buffers[i] = p.frozen[param.Name]
		case State:
			b, err := prog.Buffer(param, merged[param.Name])
			if err != nil {
				return err
			}
			defer b.Finalize()
			buffers[i] = b
		}
	}
	for len(rows) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		now := rows[:min(p.rows(seq), len(rows))]
		rows = rows[len(now):]
		for i, c := range in { // the parameters begin with the inputs
			b, err := prog.Buffer(prog.Params[i], p.gather(c, seq, now))
			if err != nil {
				return err
			}
			buffers[i] = b
		}
		res, err := prog.Run(buffers)
		if err != nil {
			return err
		}
		values := prog.outputs[0].Node.Shape().Size()
		scores, err := Floats(res[0], values)
		if err != nil {
			return err
		}
		for i := range in { // back to the backend's pool
			_ = buffers[i].Finalize()
		}
		_ = res[0].Finalize()
		for i, r := range now {
			k := values / p.rows(seq)
			out[r] = append([]float32(nil), scores[i*k:(i+1)*k]...)
		}
	}
	return nil
}

// gather puts the rows of a column side by side, each cut to seq tokens; rows that
// only fill up the pass are padding.
func (p *Predictor) gather(c task.Values, seq int, rows []int) any {
	n, cut := c.Size(), model.Elements(p.cut(c.Column, seq))
	if c.Type == task.F32 {
		flat := make([]float32, p.rows(seq)*cut)
		for i, r := range rows {
			copy(flat[i*cut:(i+1)*cut], c.F32[r*n:])
		}
		return flat
	}
	flat := make([]int32, p.rows(seq)*cut)
	if c.Name == task.Tokens {
		for i := range flat {
			flat[i] = int32(p.layout.Config.PadTokenID)
		}
	}
	for i, r := range rows {
		copy(flat[i*cut:(i+1)*cut], c.I32[r*n:])
	}
	return flat
}

// Predict returns the index of each text's best class (the lowest on a tie).
func (p *Predictor) Predict(ctx context.Context, adapter []float32, rank int, tokens [][]int32) ([]int, error) {
	logits, err := p.Logits(ctx, adapter, rank, tokens)
	if err != nil {
		return nil, err
	}
	best := make([]int, len(logits))
	for i, row := range logits {
		best[i] = task.Best(row)
	}
	return best, nil
}

// mostScores is how many scores are held at once: of masked words each has one for
// every token of the vocabulary.
const mostScores = 1 << 25

// RowsOfScores is the number of rows of masked, or written, words whose scores are held in memory
// at once.
func RowsOfScores(k task.Task, words int) int {
	places := 1
	for _, c := range k.Columns() {
		if c.Name == task.Places || c.Name == task.DecoderTokens {
			places = c.Size()
		}
	}
	return max(1, mostScores/(places*words))
}

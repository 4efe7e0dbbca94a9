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

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
)

// predictBatch is the number of rows of one forward pass.
const predictBatch = 16

// Predictor classifies texts with an adapter at any rank. The low-rank product
// is merged into query and value on the host (W + alpha/b * B A), so that one
// graph serves every rank at the cost of the bare encoder. Texts are batched in
// the order of their lengths, each batch padded to an eighth of seq: padding is
// masked, so a text's logits do not depend on how much of it there is, up to
// rounding. The same call gives the same bits. Safe for concurrent use.
type Predictor struct {
	layout  *model.Layout
	base    *model.Base
	seq     int
	backend compute.Backend

	mu       sync.Mutex
	programs map[int]*program // by sequence length; under mu
	frozen   map[string]compute.Buffer
}

// NewPredictor prepares inference for token rows of length seq on a backend;
// nil is the Go backend.
func NewPredictor(layout *model.Layout, base *model.Base, seq int, be compute.Backend) (*Predictor, error) {
	if seq < 1 || seq > layout.Config.MaxTokens() {
		return nil, fmt.Errorf("nn: seq is %d, want 1..%d, the positions of the base", seq, layout.Config.MaxTokens())
	}
	p := &Predictor{layout: layout, base: base, seq: seq, backend: be, programs: map[int]*program{}}
	prog, err := p.program(seq)
	if err != nil {
		return nil, err
	}
	p.frozen, err = frozenBuffers(prog, base, map[string]compute.Buffer{})
	return p, err
}

// program returns the compiled forward pass for a sequence length.
func (p *Predictor) program(seq int) (*program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if prog, ok := p.programs[seq]; ok {
		return prog, nil
	}
	prog, err := compile(p.backend, fmt.Sprintf("predict-s%d", seq), func(g *graph.Graph) ([]Param, []Output, error) {
		ps := newParams(g)
		tokens := ps.add(task.Tokens, Input, dtypes.Int32, predictBatch, seq)
		c := p.layout.Config
		mergedParams(ps, p.layout)
		logits := encoder{cfg: c, params: ps}.logits(tokens, p.layout.Classes)
		return ps.list, []Output{{Name: "logits", Node: logits}}, nil
	})
	if err == nil {
		p.programs[seq] = prog
	}
	return prog, err
}

// mergedParams adds what an adapter changes to a graph, under the base's own names:
// Layout.Merge gives the values.
func mergedParams(ps *params, layout *model.Layout) *params {
	added := map[string]bool{}
	entries := layout.Entries()
	for i, e := range entries {
		name, shape := e.Name, e.Shape
		switch e.Kind {
		case model.KindB:
			continue
		case model.KindA: // merged into the map that it changes
			name, shape = e.Changes(), []int{entries[i+1].Shape[0], e.Shape[1]}
		case model.KindDelta:
			name = e.Changes()
		}
		if !added[name] {
			added[name] = true
			ps.add(name, State, dtypes.Float32, shape...)
		}
	}
	return ps
}

// Logits returns one row of class scores a text. adapter is a slice at the
// given rank (Layout.Size(rank) values); tokens holds rows of seq ids, padding
// at the end. It checks ctx between batches.
func (p *Predictor) Logits(ctx context.Context, adapter []float32, rank int, tokens [][]int32) ([][]float32, error) {
	if err := p.layout.CheckRank(rank); err != nil {
		return nil, err
	}
	if want := p.layout.Size(rank); len(adapter) != want {
		return nil, fmt.Errorf("nn: adapter has %d values at rank %d, want %d", len(adapter), rank, want)
	}
	used := make([]int, len(tokens)) // by text: tokens before the padding
	order := make([]int, len(tokens))
	for i, row := range tokens {
		if err := checkTokens(row, p.seq, p.layout.Config.VocabSize); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
		used[i], order[i] = p.length(row), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(used[a], used[b]) })
	merged, err := p.layout.Merge(p.base, adapter, rank)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(tokens))
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
		if err := p.forward(ctx, prog, s, merged, tokens, order[:n], out); err != nil {
			return nil, err
		}
		order = order[n:]
	}
	return out, nil
}

// length is how many tokens stand before the padding.
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

// forward classifies the named rows of tokens in batches and writes out.
func (p *Predictor) forward(ctx context.Context, prog *program, seq int, merged map[string][]float32, tokens [][]int32, rows []int, out [][]float32) error {
	buffers := make([]compute.Buffer, len(prog.params))
	for i, param := range prog.params {
		switch param.Role {
		case Frozen:
			buffers[i] = p.frozen[param.Name]
		case State:
			b, err := prog.buffer(param, merged[param.Name])
			if err != nil {
				return err
			}
			defer b.Finalize()
			buffers[i] = b
		}
	}
	classes := p.layout.Classes
	flat := make([]int32, predictBatch*seq)
	for len(rows) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		now := rows[:min(predictBatch, len(rows))]
		rows = rows[len(now):]
		for i := range flat {
			flat[i] = int32(p.layout.Config.PadTokenID)
		}
		for i, r := range now {
			copy(flat[i*seq:(i+1)*seq], tokens[r])
		}
		in, err := prog.buffer(prog.params[0], flat)
		if err != nil {
			return err
		}
		buffers[0] = in
		res, err := prog.run(buffers)
		if err != nil {
			return err
		}
		scores, err := floats(res[0], predictBatch*classes)
		if err != nil {
			return err
		}
		_, _ = in.Finalize(), res[0].Finalize() // back to the backend's pool
		for i, r := range now {
			out[r] = append([]float32(nil), scores[i*classes:(i+1)*classes]...)
		}
	}
	return nil
}

// Predict returns the index of each text's best class (the lowest on a tie).
func (p *Predictor) Predict(ctx context.Context, adapter []float32, rank int, tokens [][]int32) ([]int, error) {
	logits, err := p.Logits(ctx, adapter, rank, tokens)
	if err != nil {
		return nil, err
	}
	best := make([]int, len(logits))
	for i, row := range logits {
		for c, x := range row {
			if x > row[best[i]] {
				best[i] = c
			}
		}
	}
	return best, nil
}

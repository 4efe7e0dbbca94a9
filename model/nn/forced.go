package nn

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
)

// MostForced is the number of answers that Logits takes at once.
const MostForced = generateBatch

// Logits returns the scores of every token at every place of given answers, [T*V] a
// row: each place sees the document and the tokens of decoder_tokens up to itself. in
// holds at most a few rows, all of which are computed at once.
func (g *Generator) Logits(ctx context.Context, adapter []float32, rank int, in task.Batch) ([][]float32, error) {
	decoder, ok := in.Column(task.DecoderTokens)
	if !ok {
		return nil, fmt.Errorf("nn: answers have no %s", task.DecoderTokens)
	}
	t, v := g.layout.Method.AnswerTokens(), g.layout.Config.VocabSize
	rows := len(decoder.I32) / t
	if rows > generateBatch {
		return nil, fmt.Errorf("nn: %d answers, want at most %d", rows, generateBatch)
	}
	if err := decoder.Check(rows); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.forced == nil { // which few ask for
		var err error
		if g.forced, err = Compile(g.encode.backend, "forced", func(gr *graph.Graph) ([]Param, []Output, error) {
			e := g.begin(gr)
			in := g.source(e)
			tokens := e.params.add(task.DecoderTokens, Input, dtypes.Int32, generateBatch, t)
			x := e.decode(tokens, e.encode(in))
			return e.params.list, []Output{{Name: "logits", Node: linear(x, e.head(), nil)}}, nil
		}); err != nil {
			return nil, err
		}
	}
	if err := g.adapt(adapter, rank, g.encode, g.decode); err != nil {
		return nil, err
	}
	given := map[string]compute.Buffer{}
	if err := g.read(g.forced, given, in, 0, rows); err != nil {
		return nil, err
	}
	result, err := g.call(g.forced, given)
	if err != nil {
		return nil, err
	}
	all, err := Floats(result["logits"], generateBatch*t*v)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, rows)
	for i := range out {
		out[i] = all[i*t*v : (i+1)*t*v]
	}
	return out, nil
}

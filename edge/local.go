package edge

import (
	"fmt"
	"io"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/tokenizer"
)

// local is the device's data, tokenized for the job. It is immutable.
type local struct {
	tokens [][]int32 // each of the job's sequence length, padded
	labels []int32
}

// tokenize turns examples into fixed-length token rows.
func tokenize(set *dataset.Set, tok *tokenizer.WordPiece, sequence int) *local {
	l := &local{tokens: make([][]int32, len(set.Examples)), labels: make([]int32, len(set.Examples))}
	for i, e := range set.Examples {
		l.tokens[i] = tok.EncodeFixed(e.Text, sequence)
		l.labels[i] = int32(e.Label)
	}
	return l
}

// batches draws steps batches: the examples in a random order, and in a new one
// when all were used. A batch never spans two orders, so that no example stands
// in it twice; rows left over have weight 0.
func (l *local) batches(rnd io.Reader, steps, size, sequence int) ([]Batch, error) {
	n := len(l.tokens)
	if n == 0 {
		return nil, fmt.Errorf("%w: no examples", ErrData)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	out := make([]Batch, steps)
	at := n
	for s := range out {
		if at >= n {
			for i := n - 1; i > 0; i-- {
				j, err := uniform(rnd, i+1)
				if err != nil {
					return nil, err
				}
				order[i], order[j] = order[j], order[i]
			}
			at = 0
		}
		b := Batch{Tokens: make([]int32, size*sequence), Labels: make([]int32, size), Weights: make([]float32, size)}
		for row := 0; row < size && at < n; row, at = row+1, at+1 {
			copy(b.Tokens[row*sequence:(row+1)*sequence], l.tokens[order[at]])
			b.Labels[row] = l.labels[order[at]]
			b.Weights[row] = 1
		}
		out[s] = b
	}
	return out, nil
}

//go:build !js || full

package edge

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
)

// mostWritten bounds a text, tokens: each takes a pass over all that is before it.
const mostWritten = 64

// write is say for a model that writes. It ends where the model ends it, where there is no
// room, or where another pass would take more work than t.work in all.
func (t *Trained) write(ctx context.Context, e *dataset.Example, values []float32, each func(text string) error) ([]Prediction, error) {
	w, ok := t.task.(task.Writer)
	if !ok {
		return nil, fmt.Errorf("%w: task %s writes nothing", ErrNoModel, t.layout.Method.Task)
	}
	row := task.NewBatch(t.columns(), 1)
	room, err := w.Begin(e, row)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	scores := make([]float32, t.layout.Config.VocabSize)
	var ids []int32
	text, likely := "", 1.0
	for len(ids) < min(room, mostWritten) && t.loaded.bound(len(ids)+1) <= t.work {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := t.pass(ctx, row, values, scores); err != nil {
			return nil, err
		}
		if err := finite(scores); err != nil {
			return nil, err
		}
		id := task.Best(scores)
		if w.End(int32(id)) {
			break
		}
		likely *= share(scores, id)
		w.Append(row, len(ids), int32(id))
		ids = append(ids, int32(id))
		text = strings.ToValidUTF8(w.Text(ids), "\uFFFD")
		if each != nil {
			if err := each(text); err != nil {
				return nil, err
			}
		}
	}
	return []Prediction{{Label: text, Probability: likely}}, nil
}

// share is the softmax of the best of scores.
func share(scores []float32, best int) float64 {
	var sum float64
	for _, s := range scores {
		sum += math.Exp(float64(s - scores[best]))
	}
	return 1 / sum
}

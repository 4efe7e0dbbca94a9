package metric

import (
	"context"

	"github.com/starling-fl/starling/model"
)

// Evaluator measures a released adapter on public data, never on devices' data.
type Evaluator interface {
	// Evaluate returns a score for each of the ranks, in their order. Rank 0 is the
	// head alone.
	Evaluate(ctx context.Context, a *model.Adapter, ranks []int) ([]Score, error)
}

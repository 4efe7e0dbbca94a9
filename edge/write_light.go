//go:build js && !full

package edge

import (
	"context"

	"github.com/starling-fl/starling/data/dataset"
)

// write is for the full build, which alone has tasks that write.
func (*Trained) write(context.Context, *dataset.Example, []float32, func(string) error) ([]Prediction, error) {
	return nil, ErrNoModel
}

package edge

import (
	"fmt"

	"github.com/starling-fl/starling/model"
)

// newOwnBase: a page fetches its coordinator's base, and has no folder with another.
func newOwnBase(*model.Base) (ownBase, error) {
	return nil, fmt.Errorf("%w: base: a page has none of its own", ErrConfig)
}

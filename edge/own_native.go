//go:build !js

package edge

import (
	"fmt"

	"github.com/starling-fl/starling/model"
)

func newOwnBase(b *model.Base) (ownBase, error) {
	own := ownBase{}
	forms := []*model.Base{b}
	if !b.Packed() {
		packed, err := b.Pack()
		if err != nil {
			return nil, fmt.Errorf("%w: base: %w", ErrConfig, err)
		}
		forms = append(forms, packed)
	}
	for _, form := range forms {
		sum, err := form.SHA256()
		if err != nil {
			return nil, fmt.Errorf("%w: base: %w", ErrConfig, err)
		}
		own[sum] = form
	}
	return own, nil
}

package edge

import (
	"fmt"

	"github.com/starling-fl/starling/model"
)

// ownBase is a base that the owner has, from a hub, a mirror or a folder: in the form that
// it is stored in, and as 4-bit codes, since a job may ask for either.
type ownBase map[[32]byte]*model.Base

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

package edge

import "github.com/starling-fl/starling/model"

// ownBase is a base that the owner has, from a hub, a mirror or a folder: in the form that it is
// stored in and as 4-bit codes, since a job may ask for either.
type ownBase map[[32]byte]*model.Base

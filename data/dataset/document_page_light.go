//go:build js && !full

package dataset

// picture: a page draws no documents.
func (*sender) picture(*page) *Image { return nil }

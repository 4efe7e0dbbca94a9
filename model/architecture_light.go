//go:build js && !full

package model

// heavy: pages for decoders and recordings load the full build.
func heavy() map[string]*architecture { return nil }

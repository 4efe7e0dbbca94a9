//go:build !js || full

package model

import "maps"

// heavy are the architectures that most jobs of a page do without.
func heavy() map[string]*architecture {
	all := decoders()
	maps.Copy(all, listeners())
	return all
}

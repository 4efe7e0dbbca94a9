//go:build !js || full

package model

import "maps"

// heavy are the architectures that most jobs of a page do without.
func heavy() map[string]*architecture {
	all := map[string]*architecture{
		"roberta":     &robertaArchitecture,
		"xlm-roberta": ofRoberta("XLMRoberta"),
		"camembert":   ofRoberta("Camembert"),
		"t5":          &t5Architecture,
	}
	maps.Copy(all, decoders())
	maps.Copy(all, listeners())
	return all
}

package model

import (
	"fmt"
	"slices"
)

// checkDepth refuses files that hold a layer more than their configuration says: a model
// without its last layers can be loaded, and computes something else.
func checkDepth(c Config, files []*SafeTensors) error {
	encoder, decoder, pages := c, c, c
	encoder.NumHiddenLayers++
	if c.T5.Visual.On() {
		pages.T5.Visual.NumHiddenLayers++
	}
	decoder.T5.DecoderLayers++ // of others it is no part
	for _, more := range []struct {
		than   Config
		what   string
		layers int
	}{
		{encoder, "layers", c.NumHiddenLayers},
		{decoder, "decoder layers", c.T5.DecoderLayers},
		{pages, "layers of the page's encoder", c.T5.Visual.NumHiddenLayers},
	} {
		known := c.BaseTensors()
		for _, spec := range more.than.BaseTensors() {
			if slices.ContainsFunc(known, func(s TensorSpec) bool { return s.Name == spec.Name }) {
				continue
			}
			if _, name := find(c, files, spec.Name); name != "" {
				return fmt.Errorf("%w: it has %d %s, but the checkpoint has another: tensor %s", ErrConfig, more.layers, more.what, name)
			}
		}
	}
	return nil
}

package model

import (
	"fmt"
	"maps"
	"slices"
)

// activations are transformers' names (ACT2FN) of the functions that a layer's
// feed-forward may have, each with the name that a Config has for it.
var activations = map[string]string{
	"relu": "relu",
	// x Phi(x) of the normal distribution, by erf.
	"gelu": "gelu", "gelu_python": "gelu",
	// Its approximation by tanh (Hendrycks and Gimpel 2016), however it is written.
	"gelu_new": "gelu_new", "gelu_fast": "gelu_new", "gelu_accurate": "gelu_new", "gelu_pytorch_tanh": "gelu_new",
	"gelu_python_tanh": "gelu_new",
	// x sigmoid(1.702 x), the one by the logistic function.
	"quick_gelu": "quick_gelu",
	// x sigmoid(x).
	"silu": "silu", "swish": "silu",
}

// knownActivation is the Config's name of one of transformers' functions; another
// stays as it is, for Validate to refuse.
func knownActivation(name string) string {
	if known, ok := activations[name]; ok {
		return known
	}
	return name
}

// checkActivation refuses, under the key of its config.json, what no graph computes.
func (c Config) checkActivation(key string) error {
	if activations[c.HiddenAct] == c.HiddenAct && c.HiddenAct != "" {
		return nil
	}
	return fmt.Errorf("%w: %s is %.40q, want one of %q", ErrConfig, key, c.HiddenAct, slices.Sorted(maps.Keys(activations)))
}

package model

import "testing"

// TestHeavy: a page of a job over a base that its light build does not know loads the full
// one, and no other page does.
func TestHeavy(t *testing.T) {
	for name := range architectures {
		c := Config{ModelType: name}
		if c.Heavy() != (c.Causal() || c.Hears()) {
			t.Errorf("%s: heavy is %v", name, c.Heavy())
		}
	}
	if _, known := architectures["llama"]; !known {
		t.Error("this build has no decoders")
	}
}

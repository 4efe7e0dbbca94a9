package model

import "testing"

// Every architecture says what its first layer reads, and the names are tensors of its base;
// what reads no text has no words.
func TestEntranceNamesTensors(t *testing.T) {
	for kind, a := range architectures {
		c := huggingConfig(kind)
		shapes := map[string][]int{}
		for _, s := range c.BaseTensors() {
			shapes[s.Name] = s.Shape
		}
		e := c.Entrance()
		if (e.Words == "") != a.textless() || (len(e.Maps) == 0) != a.textless() {
			t.Errorf("%s: words %q, maps %v", kind, e.Words, e.Maps)
		}
		for _, name := range append([]string{e.Words, e.Positions, e.Types, e.Gain, e.Bias}, e.Maps...) {
			if name != "" && shapes[name] == nil {
				t.Errorf("%s: the base has no %s", kind, name)
			}
		}
		if a.tied != nil && shapes[a.tied.words] == nil {
			t.Errorf("%s: the base has no %s", kind, a.tied.words)
		}
		layers, attentions := c.Depth()
		if layers < c.NumHiddenLayers || attentions < layers {
			t.Errorf("%s: %d layers, %d attentions", kind, layers, attentions)
		}
	}
}

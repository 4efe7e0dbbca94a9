package model

import (
	"strings"
	"testing"
)

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
		if (e.Words == "") != a.textless || (len(e.Maps) == 0) != a.textless {
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

// An ELECTRA whose embeddings are narrower than its layers has a map between them that nothing
// here computes.
func TestElectraOfOneWidth(t *testing.T) {
	text := `{"model_type":"electra","vocab_size":99,"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,
"intermediate_size":9,"max_position_embeddings":16,"embedding_size":`
	c, err := ParseConfig([]byte(text + "8}"))
	if err != nil {
		t.Fatal(err)
	}
	if c.huggingFace()["embedding_size"] != 8 {
		t.Errorf("written as %v", c.huggingFace())
	}
	if _, err := ParseConfig([]byte(text + "4}")); err == nil || !strings.Contains(err.Error(), "embedding_size is 4 and hidden_size 8") {
		t.Errorf("%v", err)
	}
}

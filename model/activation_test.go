package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Each of transformers' names is read under every family's key, and what is exported
// names the same function.
func TestActivationsOfTransformers(t *testing.T) {
	for name, want := range map[string]string{
		"relu": "relu", "gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_new", "gelu_fast": "gelu_new",
		"gelu_accurate": "gelu_new", "gelu_pytorch_tanh": "gelu_new", "gelu_python_tanh": "gelu_new",
		"quick_gelu": "quick_gelu", "silu": "silu", "swish": "silu",
	} {
		for _, config := range []string{
			`{"model_type":"bert","vocab_size":99,"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,
				"intermediate_size":9,"max_position_embeddings":9,"hidden_act":%q}`,
			`{"model_type":"distilbert","vocab_size":99,"dim":8,"n_layers":1,"n_heads":2,"hidden_dim":9,
				"max_position_embeddings":9,"activation":%q}`,
			`{"model_type":"vit","hidden_act":%q}`,
			`{"model_type":"t5","feed_forward_proj":%q}`,
		} {
			c, err := ParseConfig(fmt.Appendf(nil, config, name))
			if err != nil || c.HiddenAct != want {
				t.Errorf("%s: %q is read as %q: %v", config, name, c.HiddenAct, err)
			}
		}
		gated, err := ParseConfig(fmt.Appendf(nil, `{"model_type":"t5","feed_forward_proj":"gated-%s"}`, name))
		inside := want
		if name == "gelu" { // T5Config: of this spelling alone
			inside = "gelu_new"
		}
		if err != nil || gated.HiddenAct != inside || !gated.T5.Gated {
			t.Errorf("gated-%s is read as %q: %v", name, gated.HiddenAct, err)
		}
		data, err := json.Marshal(gated.t5Config())
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseConfig(data); err != nil || again != gated {
			t.Errorf("gated-%s is written as %s: %v", name, data, err)
		}
	}
	for _, name := range []string{"", "mish", "relu2", "gelu_10", "Silu"} {
		_, err := ParseConfig(fmt.Appendf(nil, `{"model_type":"vit","hidden_act":%q}`, name))
		if err == nil || !strings.Contains(err.Error(), "hidden_act") || !strings.Contains(err.Error(), "quick_gelu") {
			t.Errorf("%q: %v, want the names that are known", name, err)
		}
	}
}

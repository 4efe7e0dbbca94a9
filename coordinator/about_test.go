package coordinator

import (
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/model"
)

// A page loads what the job needs: a build without it would fail after the owner joined.
func TestFullBuild(t *testing.T) {
	bert := tinyBase(t)
	other := *bert
	other.Tokenizer = []byte(`{"model":{"type":"BPE"}}`)
	for name, c := range map[string]struct {
		base   *model.Base
		hybrid bool
		want   bool
	}{
		"texts":             {bert, false, false},
		"hybrid":            {bert, true, true},
		"another tokenizer": {&other, false, true},
		"pictures":          {&model.Base{Config: model.Config{ModelType: "vit"}}, false, false},
		"recordings":        {&model.Base{Config: model.Config{ModelType: "hubert"}}, false, true},
		"a decoder":         {&model.Base{Config: model.Config{ModelType: "llama"}, Tokenizer: bert.Tokenizer}, false, true},
		"a RoBERTa":         {&model.Base{Config: model.Config{ModelType: "roberta"}, Tokenizer: bert.Tokenizer}, false, true},
	} {
		j := tinyJob(3)
		j.Shard.Hybrid = c.hybrid
		if got := heavy(&core.Terms{Job: j, Base: c.base}); got != c.want {
			t.Errorf("%s: full %v, want %v", name, got, c.want)
		}
	}
}

package core

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// A job whose updates are too large is told which limit it meets, and what would fit its base: here
// whole fine-tuning of a MiniLM.
func TestTooLargeAnUpdateSaysWhatFits(t *testing.T) {
	c, err := model.ParseConfig([]byte(`{"model_type":"bert","vocab_size":30522,"hidden_size":384,"num_hidden_layers":6,"num_attention_heads":12,
		"intermediate_size":1536,"max_position_embeddings":512}`))
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Parse(strings.NewReader("name: a\nlabels: [a, b]\nadapter: {method: full}\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = CheckSize(j, c)
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{"adapter.method full trains 22", "at most 16777216", "the quantizer's limit", "lora at rank_max 8 trains", "head trains"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

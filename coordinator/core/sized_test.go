package core

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// A job whose updates are too large is told which limit it meets, and what would fit its base: here
// whole fine-tuning of a BERT-base.
func TestTooLargeAnUpdateSaysWhatFits(t *testing.T) {
	c, err := model.ParseConfig([]byte(`{"model_type":"bert","vocab_size":30522,"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,
		"intermediate_size":3072,"max_position_embeddings":512}`))
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
	for _, want := range []string{"adapter.method full trains 109", "at most 67076096", "lora at rank_max 8 trains", "head trains"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

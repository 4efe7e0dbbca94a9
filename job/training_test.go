package job

import (
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/model"
)

// The rule at the bases that it was tuned and measured on, and at sizes whose usual
// rates are known (Hu et al. 2022, table 9: RoBERTa base 5e-4, large 2e-4 to 4e-4).
func TestDefaultsFollowTheBase(t *testing.T) {
	for _, c := range []struct {
		name                    string
		hidden, layers          int
		alpha, rate, head, clip float64
	}{
		{"the default base", 64, 2, 4, 0.03, 0.03, 2},
		{"MiniLM", 384, 6, 16, 0.0017, 0.012, 0.81},
		{"BERT base", 768, 12, 16, 0.00042, 0.0087, 0.72},
		{"RoBERTa large", 1024, 24, 16, 0.00016, 0.0075, 0.7},
	} {
		cfg := model.BERT(100, c.hidden, c.layers, 2, 64)
		m := model.Method{RMax: 8, Alpha: 1}
		d := DefaultLocal("adamw", cfg, m)
		clip := DefaultClipNorm("adamw", cfg, m, 8, 8, 4, d.LearningRate, d.HeadLearningRate)
		if d.Alpha != c.alpha || d.LearningRate != c.rate || d.HeadLearningRate != c.head || math.Abs(clip-c.clip) > 0.1*c.clip {
			t.Errorf("%s: %+v, clip norm %v, want %+v", c.name, d, clip, c)
		}
	}
}

// A job that promises no privacy is not clipped below what its rates allow, unless it says so; nothing of it would gain.
func TestNoPrivacyNoClipping(t *testing.T) {
	c := model.BERT(100, 64, 2, 2, 64)
	norm := func(privacy string) float64 {
		t.Helper()
		j, err := Parse(strings.NewReader("name: a\nlabels: [a, b]\ntraining: {steps: 8}\nprivacy: {" + privacy + "}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return j.ForBase(c).Privacy.ClipNorm
	}
	if free, private := norm("none: true"), norm("epsilon: 2"); free != 4*private || private <= 0 {
		t.Errorf("clip norms %v and %v", free, private)
	}
	if got := norm("none: true, clip_norm: 0.5"); got != 0.5 {
		t.Errorf("a given clip norm became %v", got)
	}
}

// A decoder's layers count: 0.01 is what the embedded base for documents learns with,
// where 0.03 loses what it knew (lab/bench/documents).
func TestDefaultsCountADecoder(t *testing.T) {
	c := model.Config{ModelType: "t5", HiddenSize: 64, NumHiddenLayers: 2, NumAttentionHeads: 4, T5: model.T5{DecoderLayers: 2, KeySize: 16}}
	m := model.Method{RMax: 8, Alpha: 1, Task: model.TaskAnswer}
	if d := DefaultLocal("adamw", c, m); d.LearningRate != 0.01 {
		t.Errorf("rate %v, want 0.01", d.LearningRate)
	}
	m.Kind = model.MethodFull
	if d := DefaultLocal("adamw", c, m); d.LearningRate != 0.001 {
		t.Errorf("rate %v of the whole base, want 0.001", d.LearningRate)
	}
}

// A job that packs its base is after memory: a step's examples are then computed in two
// halves, unless the job says how.
func TestPackedBaseHalvesBatches(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "base_format: nf4": 4, "base_format: nf4\ntraining: {batch: 9}": 3, "base_format: nf4\ntraining: {batch: 7}": 1,
		"base_format: nf4\ntraining: {batch: 1}": 0, "base_format: nf4\ntraining: {micro_batch: 8}": 8, "training: {micro_batch: 2}": 2,
	} {
		j, err := Parse(strings.NewReader("name: a\nlabels: [a, b]\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		if got := j.Training.MicroBatch; got != want {
			t.Errorf("%q: micro-batches of %d, want %d", text, got, want)
		}
	}
}

// A job that names no task has the only one that its base can do; one that names another
// keeps it, to be refused with the base.
func TestTaskFollowsTheBase(t *testing.T) {
	sight, writes := model.NewViT(16, 2, 8, 2, 1), model.Config{ModelType: "t5", HiddenSize: 64, NumHiddenLayers: 2, NumAttentionHeads: 4, T5: model.T5{DecoderLayers: 2, KeySize: 16}}
	for _, c := range []struct {
		named, want string
		base        model.Config
	}{
		{"", "classify", model.BERT(100, 64, 2, 2, 64)}, {"tag", "tag", model.BERT(100, 64, 2, 2, 64)},
		{"", "image", sight}, {"classify", "classify", sight}, {"image", "image", sight}, {"", "answer", writes},
	} {
		j := Default()
		j.Task = c.named
		if got := j.ForBase(c.base).Task; got != c.want {
			t.Errorf("task %q over a %q: %q, want %q", c.named, c.base.ModelType, got, c.want)
		}
	}
	parse := func(keys string) error {
		_, err := Parse(strings.NewReader("name: x\n" + keys))
		return err
	}
	if err := parse("base: t5-small\n"); err != nil {
		t.Errorf("labels that the base may not need were asked for: %v", err)
	}
	for _, keys := range []string{"", "base: t5-small\nlabels: [a]\n", "base: t5-small\ntask: classify\n"} {
		if err := parse(keys); err == nil || !strings.Contains(err.Error(), "labels has") {
			t.Errorf("%q: %v", keys, err)
		}
	}
}

package evaluate

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm/compiler"
)

// A model that starts from nothing learns what is said in some recordings, whatever fills them
// up, and is then scored without an error; one that has learnt nothing is wrong of every word.
func TestTranscripts(t *testing.T) {
	c := model.NewHubert(16, 24, 1)
	c.NumAttentionHeads, c.IntermediateSize = 2, 48
	s := &c.Speech
	s.Width, s.Kernel, s.Stride = model.Convolutions{16, 24}, model.Convolutions{32, 8}, model.Convolutions{16, 8}
	s.Rate, s.Positions, s.Groups, s.Norm, s.Masked, s.Reduction, s.NormFirst = dataset.SpokenRate, 8, 4, "layer", true, "mean", true
	set, err := dataset.Spoken(7, "train", 3, 6)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i := range set.Examples {
		e := &set.Examples[i]
		e.Text = set.Labels[e.Label]
		texts = append(texts, e.Text)
	}
	set.Examples[5].Text += " " + set.Examples[0].Text
	set.Labels = nil
	characters, err := c.WithCharacters(texts)
	if err != nil {
		t.Fatal(err)
	}
	base, err := model.RandomBase(c, 1, characters)
	if err != nil {
		t.Fatal(err)
	}
	const sequence = 36 // of which a recording fills 31
	spec := nn.StepSpec{Config: c, Method: model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull, Task: model.TaskTranscribe},
		Sequence: sequence, Spec: training.Spec{Batch: 6, MicroBatch: 3, Optimizer: training.AdamW}}
	l, err := spec.Layout()
	if err != nil {
		t.Fatal(err)
	}
	k, err := task.New(base, l, sequence)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := task.EncodeAll(k, set.Examples)
	if err != nil {
		t.Fatal(err)
	}
	step, err := nn.NewTrainer(spec, base)
	if err != nil {
		t.Fatal(err)
	}
	made, err := NewLabelled(compiler.New(), base, l, sequence, set)
	if err != nil || !made[0].Transcribes() {
		t.Fatal(err)
	}
	a := model.NewAdapter(l, 1)
	before, err := made[0].Score(t.Context(), a, 0)
	if err != nil || before.Accuracy > 0 {
		t.Errorf("untrained: %+v, %v", before, err)
	}
	values := a.Slice(0)
	delta, losses, err := step.Train(t.Context(), values, slices.Repeat([]task.Batch{rows}, 300), 0.01)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range delta {
		values[i] += x
	}
	if math.Abs(float64(losses[0])-before.Loss) > 1e-3*before.Loss {
		t.Errorf("the first step's loss is %v, and that of the evaluation before %v", losses[0], before.Loss)
	}
	search, err := made[0].Beams(8)
	if err != nil {
		t.Fatal(err)
	}
	for how, e := range map[string]*Labelled{"greedy": made[0], "eight beams": search} {
		said, loss, err := e.Predict(t.Context(), values, 0, 0, len(set.Examples))
		if err != nil {
			t.Fatal(err)
		}
		got := e.Scored(said, loss)
		if got.Accuracy != 1 || *got.WordErrors != 0 || *got.CharacterErrors != 0 || got.Loss > 0.2 {
			t.Errorf("%s: %+v after a loss of %v", how, got, losses[len(losses)-1])
		}
	}
}

package edge

import (
	"errors"
	"math"
	"slices"
	"testing"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/quant"
)

// What a device tries at the end says of images, of words and of documents what GoMLX
// says of the same rows.
func TestPredictTasks(t *testing.T) {
	picture := &dataset.Image{Width: 12, Height: 8, Channels: 3, Pixels: make([]float32, 12*8*3)}
	for i := range picture.Pixels {
		picture.Pixels[i] = float32(i%7) / 7
	}
	read := errors.New("it is not a picture")
	vit, err := model.RandomBase(model.NewViT(32, 1, 8, 4, 3), 3, nil)
	ok(t, err)
	hears := model.NewHubert(4, 16, 1)
	hears.Speech.Positions, hears.Speech.Groups, hears.Speech.Masked = 4, 2, true
	characters, err := hears.WithCharacters([]string{"fox"})
	ok(t, err)
	hubert, err := model.RandomBase(hears, 3, characters)
	ok(t, err)
	sound := &audio.Sound{Rate: 16_000, Samples: make([]float32, 2000)}
	for i := range sound.Samples {
		sound.Samples[i] = float32(math.Sin(float64(i) / 9))
	}
	recording, err := dataset.Recorded(sound)
	ok(t, err)
	for _, x := range []struct {
		kind    model.TaskKind
		base    *model.Base
		classes int
		example dataset.Example
		bad     dataset.Example
		parts   int // of the example
		said    int
		answer  int // most tokens of one
	}{
		{model.TaskImage, vit, 3, dataset.Example{Image: dataset.Deferred(func() (*dataset.Image, error) { return picture, nil })},
			dataset.Example{Image: dataset.Deferred(func() (*dataset.Image, error) { return nil, read })}, 1, 3, 0},
		{model.TaskTag, tinyBase(t), 3, dataset.Example{Text: "fox fox fox"}, dataset.Example{}, 1, 2, 0},
		{model.TaskSpan, tinyBase(t), 0, dataset.Example{Words: []string{"the", "fox", "the", "fox", "the", "fox", "the", "fox"}, Question: "fox"},
			dataset.Example{Text: "fox"}, 3, 1, 2},
		{model.TaskTranscribe, hubert, 0, dataset.Example{Recording: recording}, dataset.Example{Text: "fox"}, 1, 1, 0},
	} {
		layout, err := model.NewLayout(x.base.Config, model.Method{Task: x.kind, RMax: 2, Alpha: 2, Answer: x.answer}, x.classes)
		ok(t, err)
		adapter := model.NewAdapter(layout, 7)
		values := adapter.Slice(2)
		for i := range values {
			values[i] += 0.2 * float32(math.Sin(float64(i)))
		}
		packed, _, err := quant.PackUpdate(values, nil, "f32", "none")
		ok(t, err)
		pass := nn.ForwardSpec{Config: x.base.Config, Method: layout.Method, Classes: x.classes, Rank: 2, Batch: 1, Sequence: 8}
		m := &Trained{Rank: 2, Labels: []string{"a", "b", "c"}[:x.classes], packed: packed, layout: layout, sequence: 8, work: DefaultPolicy().Work,
			program: compileWith(t, pass.Build, false), base: x.base}
		ok(t, m.open())
		said, err := m.Predict(t.Context(), &x.example, PredictOptions{})
		ok(t, err)
		if len(said) != x.said {
			t.Fatalf("%s: it says %v", x.kind, said)
		}
		predictor, err := nn.NewPredictor(layout, x.base, 8, nil)
		ok(t, err)
		asked := x.example
		if x.kind == model.TaskTag {
			x.example.Words, x.example.Tags = []string{"fox", "fox", "fox"}, []int{2, 1, 0}
		}
		if x.kind == model.TaskTranscribe {
			x.example.Text = "fox"
		}
		rows, _, err := task.Rows(m.task, []dataset.Example{x.example})
		ok(t, err)
		if len(rows) < x.parts {
			t.Fatalf("%s: %d rows", x.kind, len(rows))
		}
		batch, err := task.EncodeAll(m.task, rows)
		ok(t, err)
		compare := func(what string, said []Prediction, values []float32) {
			t.Helper()
			logits, err := predictor.Outputs(t.Context(), values, 2, batch, len(rows))
			ok(t, err)
			var want []Prediction
			switch x.kind {
			case model.TaskImage:
				want, err = ranked(task.OneOf, m.Labels, logits[0])
			case model.TaskTag:
				for _, at := range m.task.(task.Labeller).Places(batch, 0) {
					of, err := ranked(task.OneOf, m.Labels, logits[0][3*at:3*at+3])
					ok(t, err)
					want = append(want, Prediction{Word: "fox", Label: of[0].Label, Probability: of[0].Probability})
				}
			case model.TaskTranscribe:
				k := m.task.(task.Transcriber)
				labels := k.Choice().Predicted(logits[0])
				want = []Prediction{{Label: k.Text(labels), Probability: k.Probability(logits[0], labels)}}
				if what == "trained" && want[0].Label == "" {
					t.Error("nothing is said of the recording, which tells nothing")
				}
			case model.TaskSpan:
				want = []Prediction{{}}
				for i, l := range logits {
					text, p, err := m.task.(*task.Span).Best(&rows[i], l)
					ok(t, err)
					if p > want[0].Probability {
						want[0] = Prediction{Label: text, Probability: p}
					}
				}
			}
			ok(t, err)
			if !slices.EqualFunc(said, want, func(a, b Prediction) bool {
				return a.Word == b.Word && a.Label == b.Label && math.Abs(a.Probability-b.Probability) < 1e-5
			}) {
				t.Errorf("%s, %s: it says %v, GoMLX %v", x.kind, what, said, want)
			}
		}
		compare("trained", said, values)
		// The base beside it has learnt nothing, and the model is afterwards what it was.
		before, err := m.Predict(t.Context(), &asked, PredictOptions{Untrained: true})
		ok(t, err)
		compare("untrained", before, model.NewAdapter(layout, 0).Slice(2))
		if x.classes > 0 && math.Abs(before[0].Probability-1/float64(x.classes)) > 1e-9 {
			t.Errorf("%s: the base alone prefers a label: %v", x.kind, before)
		}
		again, err := m.Predict(t.Context(), &asked, PredictOptions{})
		ok(t, err)
		compare("trained, again", again, values)
		if p, err := m.Predict(t.Context(), &x.bad, PredictOptions{}); !errors.Is(err, ErrData) || x.kind == model.TaskImage && !errors.Is(err, read) {
			t.Errorf("%s: of an example of another task it says %v, %v", x.kind, p, err)
		}
		ok(t, m.Close())
	}
	if err := (&Trained{layout: &model.Layout{Method: model.Method{Task: model.TaskPretrain}}}).open(); !errors.Is(err, ErrNoModel) {
		t.Errorf("a pretrained model is opened: %v", err)
	}
}
